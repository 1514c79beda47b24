import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { Button } from '../../controls/button.tsx';
import { Fault } from '../../controls/fault.tsx';
import { useAction } from '../resource.ts';
import { Fields } from './fields.tsx';
import { bodyOf, type FormPart, type Texts, textsOf } from './form-fields.ts';

interface FormProps {
  /** Text of the button. */
  readonly action: string;
  readonly isDanger?: boolean;
  /** Whether the button stands behind the fields. */
  readonly isRow?: boolean;
  /** Returns the fields; some depend on what others have. */
  readonly partsOf: (texts: Texts) => readonly FormPart[];
  /** What the fields change; null = something new. */
  readonly record?: object | null;
  /** Whether the fields can be sent. Default: yes. */
  readonly canSend?: (texts: Texts) => boolean;
  /** Sends what the fields change. @throws RequestFailure */
  readonly onSend: (body: Readonly<Record<string, unknown>>, texts: Texts) => Promise<unknown>;
  /** Stands above the fields. */
  readonly children?: ComponentChildren;
}

/** Fields and the button that sends them, with the reason of a refusal. */
export function Form(props: FormProps) {
  const { action, isDanger, isRow, partsOf, record = null, canSend = () => true, onSend, children } = props;
  const values = useSignal(textsOf(partsOf({}), record));
  const { isBusy, failure, run } = useAction(async () => {
    const texts = values.peek();
    await onSend(bodyOf(partsOf(texts), texts, record), texts);
  });
  const texts = values.value;
  const isReady = canSend(texts);
  const button = (
    <Button
      class={isDanger ? 'danger' : 'primary'}
      type="submit"
      text={isBusy && !isRow ? 'Sending…' : action}
      disabled={!isReady || isBusy}
    />
  );
  return (
    <form
      class={isRow ? 'row' : 'stack'}
      onSubmit={(event) => {
        event.preventDefault();
        if (isReady) run();
      }}
    >
      {children}
      <Fields
        parts={partsOf(texts)}
        texts={texts}
        onInput={(name, text) => (values.value = { ...values.peek(), [name]: text })}
      />
      {isRow && button}
      <Fault text={failure?.message} />
      {!isRow && <div class="row">{button}</div>}
    </form>
  );
}

interface ActionButtonProps {
  readonly text: string;
  /** Text while the request runs. Default: the same. */
  readonly busyText?: string;
  /** @throws RequestFailure */
  readonly onSend: () => Promise<void>;
}

/** A button that sends one request. A refusal stands behind it. */
export function ActionButton({ text, busyText = text, onSend }: ActionButtonProps) {
  const { isBusy, failure, run } = useAction(onSend);
  return (
    <>
      <Button text={isBusy ? busyText : text} disabled={isBusy} onClick={run} />
      <Fault text={failure?.message} />
    </>
  );
}
