import { Button } from '../../controls/button.tsx';
import { useAction } from '../resource.ts';
import { FormFault } from '../states.tsx';

interface ActionButtonProps {
  readonly text: string;
  /** Text while the request runs. Default: the same. */
  readonly busyText?: string;
  readonly class?: string;
  /** @throws RequestFailure */
  readonly onSend: () => Promise<void>;
}

/** A button that sends one request. A refusal stands behind it. */
export function ActionButton({ text, busyText = text, class: look = '', onSend }: ActionButtonProps) {
  const { isBusy, failure, run } = useAction(onSend);
  return (
    <>
      <Button class={look} text={isBusy ? busyText : text} disabled={isBusy} onClick={run} />
      <FormFault failure={failure} />
    </>
  );
}
