import { useId, useRef } from 'preact/hooks';
import { Button } from './button.tsx';
import { Icon } from './icon.tsx';

export interface MenuItem {
  readonly name: string;
  readonly onSelect: () => void;
}

interface MenuProps {
  readonly label: string;
  readonly items: readonly MenuItem[];
  readonly disabled?: boolean;
}

/** Width of the list in pixels, as menu styles have it. */
const WIDTH = 216;
const MARGIN = 8;

/** A button with a list of commands. Escape and a click beside the list close it. */
export function Menu({ label, items, disabled = false }: MenuProps) {
  const list = useRef<HTMLDivElement>(null);
  const id = useId();
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
        {items.map(({ name, onSelect }) => (
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
