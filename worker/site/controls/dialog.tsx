import type { ComponentChildren } from 'preact';
import { useEffect, useId, useRef } from 'preact/hooks';
import { Icon } from './icon.tsx';

interface DialogProps {
  readonly title: string;
  readonly onClose: () => void;
  readonly children: ComponentChildren;
  readonly class?: string;
}

/** A modal dialog that is open while it is rendered. Escape and a click beside it close it. */
export function Dialog({ title, onClose, children, class: className = '' }: DialogProps) {
  const element = useRef<HTMLDialogElement>(null);
  const heading = useId();
  useEffect(() => element.current?.showModal(), []);
  return (
    <dialog
      ref={element}
      class={className}
      aria-labelledby={heading}
      onClose={onClose}
      onPointerDown={(event) => event.target === element.current && isBeside(event) && onClose()}
    >
      <div class="dialog-head">
        <h2 id={heading}>{title}</h2>
        <button type="button" class="button plain icon" aria-label="Close" onClick={onClose}>
          <Icon name="close" />
        </button>
      </div>
      {children}
    </dialog>
  );
}

function isBeside(event: PointerEvent): boolean {
  const { left, right, top, bottom } = (event.target as Element).getBoundingClientRect();
  return event.clientX < left || event.clientX > right || event.clientY < top || event.clientY > bottom;
}
