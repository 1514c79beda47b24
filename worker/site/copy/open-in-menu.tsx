import { useId, useRef } from 'preact/hooks';
import type { TokenizedText } from '../api/whole-choices.ts';
import { Button } from '../controls/button.tsx';
import { Icon } from '../controls/icon.tsx';
import { useSession, type ViewWithText } from '../store/session.ts';

interface MenuItem {
  readonly name: string;
  readonly onSelect: () => void;
}

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

/** Width of the list in pixels, as menu styles have it. */
const WIDTH = 216;
const MARGIN = 8;

/** A list of commands that carry a text to the other views. Escape and a click beside it close it. */
export function OpenInMenu({ label, from, parts, disabled = false, items = [] }: OpenInMenuProps) {
  const { carried } = useSession();
  const list = useRef<HTMLDivElement>(null);
  const id = useId();
  const others = VIEWS.filter(([view]) => view !== from).map(([to, name]) => ({
    name,
    onSelect: () => {
      carried.value = { to, parts: parts() };
      location.hash = `#/${to}`;
    },
  }));
  const place = (event: MouseEvent) => {
    const { left, top, bottom } = (event.currentTarget as Element).getBoundingClientRect();
    const opensAbove = top > innerHeight / 2;
    list.current!.style.inset = opensAbove
      ? `auto auto ${innerHeight - top + MARGIN / 2}px auto`
      : `${bottom + MARGIN / 2}px auto auto auto`;
    list.current!.style.left = `${Math.min(left, innerWidth - WIDTH - MARGIN)}px`;
  };
  return (
    <>
      <button
        type="button"
        class="button"
        aria-label={label}
        popovertarget={id}
        disabled={disabled}
        onClick={place}
      >
        <span>{label}</span>
        <Icon name="more" />
      </button>
      <div ref={list} id={id} popover="auto" class="menu">
        {[...items, ...others].map(({ name, onSelect }) => (
          <Button
            class="plain"
            text={name}
            key={name}
            onClick={() => {
              list.current!.hidePopover();
              onSelect();
            }}
          />
        ))}
      </div>
    </>
  );
}
