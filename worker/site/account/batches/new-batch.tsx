import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import type { RequestFailure } from '../../api/request-failure.ts';
import { Button } from '../../controls/button.tsx';
import { Select } from '../../controls/select.tsx';
import { askJson, useAccount } from '../account.ts';
import { failureFrom } from '../resource.ts';
import { Failure } from '../states.tsx';
import { type BatchObject, FILE_NAME } from './batch-object.ts';
import { fileFault, type UploadProgress, uploadFile } from './file-upload.ts';

const ENDPOINTS = [
  ['/v1/completions', 'Completions'],
  ['/v1/score', 'Scores'],
] as const;

interface Running {
  readonly file: File;
  readonly progress: UploadProgress;
  readonly abort: AbortController;
}

/** Uploads a file and runs its lines. An upload that broke continues where it was. */
export function NewBatch({ onCreated }: { readonly onCreated: () => void }) {
  const account = useAccount();
  const endpoint = useSignal<string>(ENDPOINTS[0][0]);
  const running = useSignal<Running | null>(null);
  const sent = useSignal(0);
  const failure = useSignal<RequestFailure | null>(null);
  const fault = useSignal<string | null>(null);
  const chooser = useRef<HTMLInputElement>(null);
  useEffect(() => () => running.peek()?.abort.abort(), []);

  const attempt = async (run: Running) => {
    const abort = new AbortController();
    running.value = { ...run, abort };
    failure.value = null;
    try {
      const upload = {
        account,
        ...run,
        signal: abort.signal,
        onSent: (bytes: number) => (sent.value = bytes),
      };
      const body = {
        input_file_id: await uploadFile(upload),
        endpoint: endpoint.peek(),
        completion_window: '24h',
        metadata: { [FILE_NAME]: run.file.name },
      };
      await askJson<BatchObject>(account, '/v1/batches', { body, signal: abort.signal });
      running.value = null;
      onCreated();
    } catch (thrown) {
      if (abort.signal.aborted) return;
      failure.value = failureFrom(thrown);
      if (failure.value.status === 401) account.refusal.value = failure.value;
    }
  };
  const choose = (file: File | undefined) => {
    if (file === undefined) return;
    fault.value = fileFault(file);
    failure.value = null;
    if (fault.value !== null) return;
    sent.value = 0;
    void attempt({ file, progress: { id: null, parts: [] }, abort: new AbortController() });
  };
  const giveUp = ({ abort, progress }: Running) => {
    abort.abort(new DOMException('The upload was given up.', 'AbortError'));
    running.value = null;
    failure.value = null;
    // The server forgets it after an hour in any case.
    if (progress.id !== null)
      account.ask(`/v1/uploads/${progress.id}/cancel`, { method: 'POST' }).catch(() => undefined);
  };
  const current = running.value;
  return (
    <section class="panel" aria-label="New batch">
      {current === null ? (
        <div class="row">
          <Select
            label="Endpoint of the lines"
            value={endpoint.value}
            options={ENDPOINTS}
            onChange={(chosen) => (endpoint.value = chosen)}
          />
          <input
            ref={chooser}
            type="file"
            hidden
            accept=".jsonl,.ndjson,application/jsonl"
            onChange={({ currentTarget }) => {
              choose(currentTarget.files?.[0]);
              // The same file may be chosen again.
              currentTarget.value = '';
            }}
          />
          <Button class="primary" icon="plus" text="Run a file…" onClick={() => chooser.current?.click()} />
          <span class="quiet">
            JSON Lines, at most 200 MiB: <a href="/docs/guides/batches#input">their form</a>
          </span>
        </div>
      ) : (
        <Progress of={current} sent={sent.value} isBroken={failure.value !== null} onGiveUp={giveUp} />
      )}
      {fault.value !== null && (
        <p class="error-text" role="alert">
          {fault.value}
        </p>
      )}
      {failure.value !== null && current !== null && (
        <Failure failure={failure.value} onRetry={() => void attempt(current)} />
      )}
    </section>
  );
}

interface ProgressProps {
  readonly of: Running;
  /** Bytes. */
  readonly sent: number;
  readonly isBroken: boolean;
  readonly onGiveUp: (running: Running) => void;
}

function Progress({ of: running, sent, isBroken, onGiveUp }: ProgressProps) {
  const { file } = running;
  const percent = Math.floor((100 * sent) / file.size);
  return (
    <div class="stack">
      <p>
        <bdi>{file.name}</bdi>{' '}
        <span class="quiet figures">
          {isBroken ? `stopped at ${percent} %` : percent < 100 ? `${percent} % sent` : 'is being checked'}
        </span>
      </p>
      <progress max={file.size} value={sent} aria-label="Upload" />
      <div class="row">
        <Button text="Give up" onClick={() => onGiveUp(running)} />
      </div>
    </div>
  );
}
