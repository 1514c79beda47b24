import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { failureFrom, reasonOf } from '../api/request-failure.ts';
import { Button } from '../controls/button.tsx';
import { Dialog } from '../controls/dialog.tsx';
import { Pairs } from '../controls/pairs.tsx';
import { useSession } from '../store/session.ts';
import { CodeBlock } from './code-block.tsx';
import { type Run, repeatRun, verdictOf } from './run.ts';

export interface RunDialogProps {
  readonly run: Run;
  readonly onClose: () => void;
}

/** The exact request of a run, to repeat it. */
export function RunDialog({ run, onClose }: RunDialogProps) {
  const { id, requestId, fingerprint, dialect, body, at } = run;
  return (
    <Dialog title="Request of this text" class="wide" onClose={onClose}>
      <div class="stack">
        <Pairs
          of={[
            ['Response', id],
            ['Request', requestId],
            ['Seed', String(body.seed ?? 'none')],
            ['System fingerprint', fingerprint],
            ['Model', String(body.model)],
            ['Dialect', dialect ?? 'own dialect'],
            ['Time', new Date(at).toISOString()],
          ]}
        />
        <CodeBlock code={JSON.stringify(body, null, 2)} />
        <Repeat run={run} />
      </div>
    </Dialog>
  );
}

/** Sends the request again, and says whether the text is equal. */
function Repeat({ run }: Pick<RunDialogProps, 'run'>) {
  const { connection } = useSession();
  const verdict = useSignal('');
  const isRunning = useSignal(false);
  const stopping = useRef(new AbortController());
  useEffect(() => () => stopping.current.abort(), []);
  const repeat = async () => {
    stopping.current = new AbortController();
    const { signal } = stopping.current;
    isRunning.value = true;
    verdict.value = 'Running …';
    verdict.value = await repeatRun(connection.peek(), run, signal).then(
      (again) => verdictOf(run, again),
      (thrown: unknown) => {
        if (signal.aborted) return 'Stopped.';
        return reasonOf(failureFrom(thrown)) || 'Enter a key first.';
      },
    );
    isRunning.value = false;
  };
  return (
    <div class="row">
      <Button icon="retry" text="Repeat" disabled={isRunning.value} onClick={() => void repeat()} />
      <Button icon="stop" text="Stop" disabled={!isRunning.value} onClick={() => stopping.current.abort()} />
      <span role="status">{verdict.value}</span>
    </div>
  );
}
