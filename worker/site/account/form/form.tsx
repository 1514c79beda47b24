import type { ComponentChildren } from 'preact';
import { Button } from '../../controls/button.tsx';
import { useAction } from '../resource.ts';
import { FormFault } from '../states.tsx';

interface FormProps {
  /** Text of the button. */
  readonly action: string;
  readonly look?: 'primary' | 'danger';
  /** Whether the fields can be sent. Default: yes. */
  readonly canSend?: boolean;
  /** Sends the fields. @throws RequestFailure */
  readonly onSend: () => Promise<void>;
  readonly children: ComponentChildren;
}

/** Fields and the button that sends them. A refusal stands between them. */
export function Form({ action, look = 'primary', canSend = true, onSend, children }: FormProps) {
  const { isBusy, failure, run } = useAction(onSend);
  return (
    <form
      class="stack"
      onSubmit={(event) => {
        event.preventDefault();
        if (canSend) run();
      }}
    >
      {children}
      <FormFault failure={failure} />
      <div class="row">
        <Button
          class={look}
          type="submit"
          text={isBusy ? 'Sending…' : action}
          disabled={!canSend || isBusy}
        />
      </div>
    </form>
  );
}
