import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { Dialog } from '../../controls/dialog.tsx';
import { Field } from './fields.tsx';
import { Form } from './form.tsx';

interface ConfirmByNameProps {
  /** What happens to the record, such as `Delete`. */
  readonly verb: string;
  /** What the record is, such as `key`. */
  readonly kind: string;
  readonly name: string;
  /** Closes the dialog; `changed` = it has happened. */
  readonly onDone: (changed: boolean) => void;
  /** @throws RequestFailure */
  readonly onConfirm: () => Promise<unknown>;
  /** Says after the name what happens. */
  readonly children: ComponentChildren;
}

/** Asks for the name, so that no other record is meant than the one that it happens to. */
export function ConfirmByName({ verb, kind, name, onDone, onConfirm, children }: ConfirmByNameProps) {
  const typed = useSignal('');
  const isMeant = typed.value.trim() === name.trim();
  const confirm = async () => {
    await onConfirm();
    onDone(true);
  };
  return (
    <Dialog title={`${verb} ${/^[aeiou]/.test(kind) ? 'an' : 'a'} ${kind}`} onClose={() => onDone(false)}>
      <Form action={`${verb} the ${kind}`} look="danger" canSend={isMeant} onSend={confirm}>
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
