import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { type RequestFailure, reasonOf } from '../api/request-failure.ts';
import { Button } from '../controls/button.tsx';
import { useSession } from '../store/session.ts';
import { adviceFor, waitBeforeRetry, waitText } from './failure-advice.ts';

interface FailureNoticeProps {
  readonly failure: RequestFailure;
  readonly onRetry: () => void;
}

/** Says what happened, why, and what to do. Counts down the time before a retry. */
export function FailureNotice({ failure, onRetry }: FailureNoticeProps) {
  const { askForKey } = useSession();
  const [what, todo] = adviceFor(failure);
  const needsKey = ['no-key', 'key-refused'].includes(failure.kind);
  const seconds = useCountdown(waitBeforeRetry(failure), failure);
  const retriesItself = failure.kind === 'model-loading';
  useEffect(() => {
    if (retriesItself && seconds === 0) onRetry();
  }, [retriesItself, seconds === 0]);
  return (
    <div class="notice row spread" role="alert">
      <div>
        <strong>{what}</strong>
        <p>
          {reasonOf(failure)} {todo}
        </p>
        {failure.requestId !== null && <p class="request-id">Request {failure.requestId}</p>}
      </div>
      {needsKey ? (
        <Button text="Enter a key" onClick={() => (askForKey.value = true)} />
      ) : (
        <Button
          class="figures"
          icon="retry"
          text={seconds > 0 ? `Retry in ${waitText(seconds)}` : 'Retry'}
          disabled={seconds > 0}
          // The alert is read out once, not with each second.
          aria-live="off"
          onClick={onRetry}
        />
      )}
    </div>
  );
}

/** Seconds until a time. @param ms milliseconds until then, from now on if `of` changes */
export function useCountdown(ms: number, of: unknown): number {
  const left = useSignal(Math.ceil(ms / 1000));
  useEffect(() => {
    const end = performance.now() + ms;
    const update = () => {
      left.value = Math.max(0, Math.ceil((end - performance.now()) / 1000));
    };
    update();
    const timer = setInterval(update, 200);
    return () => clearInterval(timer);
  }, [of]);
  return left.value;
}
