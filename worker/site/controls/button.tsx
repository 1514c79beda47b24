import type { ComponentProps } from 'preact';
import { Icon, type IconName } from './icon.tsx';

interface ButtonProps extends Omit<ComponentProps<'button'>, 'icon'> {
  readonly text: string;
  readonly icon?: IconName;
  /** Its look: primary or plain. */
  readonly class?: string;
}

export const Button = ({ text, icon, class: look = '', type = 'button', ...rest }: ButtonProps) => (
  <button type={type} class={`button ${look}`} {...rest}>
    {icon && <Icon name={icon} />}
    {text}
  </button>
);

interface IconButtonProps extends Omit<ComponentProps<'button'>, 'icon' | 'name'> {
  readonly icon: IconName;
  readonly name: string;
  readonly keys?: string;
  readonly class?: string;
  /** Whether a chosen state is on. */
  readonly pressed?: boolean | undefined;
}

/** A button with an icon, and with a shown name as its children if there is room for one. */
export const IconButton = ({
  icon,
  name,
  keys,
  pressed,
  class: look,
  children,
  ...rest
}: IconButtonProps) => (
  <button
    type="button"
    class={`button ${look ?? 'plain icon'}`}
    aria-label={name}
    title={keys ? `${name} (${keys})` : name}
    aria-pressed={pressed}
    {...rest}
  >
    <Icon name={icon} />
    {children}
  </button>
);

interface UndoButtonsProps {
  readonly class: string;
  readonly canUndo: boolean;
  readonly canRedo: boolean;
  readonly undo: () => void;
  readonly redo: () => void;
}

export const UndoButtons = ({ class: look, canUndo, canRedo, undo, redo }: UndoButtonsProps) => (
  <>
    <IconButton class={look} icon="undo" name="Undo" keys="Ctrl-Z" disabled={!canUndo} onClick={undo} />
    <IconButton class={look} icon="redo" name="Redo" keys="Ctrl-Shift-Z" disabled={!canRedo} onClick={redo} />
  </>
);
