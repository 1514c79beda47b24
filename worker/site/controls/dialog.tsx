import type { ComponentChildren } from 'preact';
import { useId, useLayoutEffect, useRef } from 'preact/hooks';
import { IconButton } from './button.tsx';

interface DialogProps {
  readonly title: string;
  readonly onClose: () => void;
  readonly children: ComponentChildren;
  readonly class?: string;
}

/** Whether a dialog or a menu is open, which takes the keys of the view. */
export const isOverlaid = (): boolean => document.querySelector('dialog[open], :popover-open') !== null;

/** A modal dialog, open while rendered. Its first control gets the focus. Escape or a click closes it. */
export function Dialog({ title, onClose, children, class: className = '' }: DialogProps) {
  const element = useRef<HTMLDialogElement>(null);
  const heading = useId();
  // The next key belongs to the dialog, so it opens before the browser handles another event.
  useLayoutEffect(() => {
    const dialog = element.current!;
    dialog.showModal();
    // Gives the focus back.
    return () => dialog.close();
  }, []);
  return (
    <dialog
      ref={element}
      class={className}
      aria-labelledby={heading}
      onClose={(event) => event.currentTarget.isConnected && onClose()}
      onPointerDown={(event) => event.target === element.current && isBeside(event) && onClose()}
    >
      <h2 id={heading}>{title}</h2>
      {children}
      {/* Last, because browsers focus the first control. */}
      <IconButton class="plain icon dialog-close" icon="close" name="Close" keys="Esc" onClick={onClose} />
    </dialog>
  );
}

function isBeside(event: PointerEvent): boolean {
  const { left, right, top, bottom } = (event.target as Element).getBoundingClientRect();
  return event.clientX < left || event.clientX > right || event.clientY < top || event.clientY > bottom;
}
