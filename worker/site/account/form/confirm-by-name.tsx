import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { Dialog } from '../../controls/dialog.tsx';
import { Field } from './fields.tsx';
import { Form } from './form.tsx';

interface ConfirmByNameProps {
  readonly title: string;
  /** What the record is, such as `key`. */
  readonly kind: string;
  readonly name: string;
  /** Text of the button. */
  readonly action: string;
  readonly onClose: () => void;
  /** @throws RequestFailure */
  readonly onConfirm: () => Promise<void>;
  /** Says after the name what happens. */
  readonly children: ComponentChildren;
}

/** Asks for the name, so that no other record is meant than the one that it happens to. */
export function ConfirmByName({
  title,
  kind,
  name,
  action,
  onClose,
  onConfirm,
  children,
}: ConfirmByNameProps) {
  const typed = useSignal('');
  const isMeant = typed.value.trim() === name.trim();
  return (
    <Dialog title={title} onClose={onClose}>
      <Form action={action} look="danger" canSend={isMeant} onSend={onConfirm}>
        <p>
          <strong>
            <bdi>{name}</bdi>
          </strong>{' '}
          {children}
        </p>
        <Field
          title={`Type the name of the ${kind}`}
          dir="auto"
          autocomplete="off"
          spellcheck={false}
          value={typed.value}
          onInput={(text) => (typed.value = text)}
        />
      </Form>
    </Dialog>
  );
}
