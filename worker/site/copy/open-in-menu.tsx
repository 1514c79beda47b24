import type { TokenizedText } from '../api/whole-choices.ts';
import { Menu, type MenuItem } from '../controls/menu.tsx';
import { useSession, type ViewWithText } from '../store/session.ts';

interface OpenInMenuProps {
  readonly label: string;
  /** The view that has the text. */
  readonly from: ViewWithText;
  /** Returns the text in parts, with the tokens of those that were generated. */
  readonly parts: () => readonly TokenizedText[];
  readonly disabled?: boolean;
  /** Further commands. */
  readonly items?: readonly MenuItem[];
}

const VIEWS: readonly (readonly [view: ViewWithText, name: string])[] = [
  ['', 'Open in Playground'],
  ['tree', 'Open in Tree'],
  ['compare', 'Open in Compare'],
];

/** Carries a text to the other views. */
export function OpenInMenu({ label, from, parts, disabled = false, items = [] }: OpenInMenuProps) {
  const { carried } = useSession();
  const others = VIEWS.filter(([view]) => view !== from).map(([to, name]) => ({
    name,
    onSelect: () => {
      carried.value = { to, parts: parts() };
      location.hash = `#/${to}`;
    },
  }));
  return <Menu label={label} disabled={disabled} items={[...items, ...others]} />;
}
