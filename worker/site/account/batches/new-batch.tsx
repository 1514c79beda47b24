import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { Bar } from '../../controls/bar.tsx';
import { Button } from '../../controls/button.tsx';
import { chooseFile } from '../../controls/choose-file.ts';
import { Fault } from '../../controls/fault.tsx';
import { Select } from '../../controls/select.tsx';
import { useAccount } from '../account.ts';
import { useAction } from '../resource.ts';
import { Failure } from '../states.tsx';
import { fileFault, type UploadProgress, uploadFile } from './file-upload.ts';

/** Name of the metadata of a batch that the page has made, with the name of its file. */
export const FILE_NAME = 'file';

const ENDPOINTS = [
  ['/v1/completions', 'Completions'],
  ['/v1/score', 'Scores'],
] as const;

interface Upload {
  readonly file: File;
  readonly progress: UploadProgress;
  readonly abort: AbortController;
}

/** Uploads a file and runs its lines. An upload that broke continues where it was. */
export function NewBatch({ onCreated }: { readonly onCreated: () => void }) {
  const account = useAccount();
  const endpoint = useSignal<string>(ENDPOINTS[0][0]);
  const upload = useSignal<Upload | null>(null);
  const sent = useSignal(0);
  const fault = useSignal<string | null>(null);
  useEffect(() => () => upload.peek()?.abort.abort(), []);
  const { failure, run } = useAction(async () => {
    const { file, progress, abort } = upload.peek()!;
    const { signal } = abort;
    try {
      const onSent = (bytes: number) => (sent.value = bytes);
      const body = {
        input_file_id: await uploadFile({ account, file, progress, signal, onSent }),
        endpoint: endpoint.peek(),
        completion_window: '24h',
        metadata: { [FILE_NAME]: file.name },
      };
      await account.ask('/v1/batches', { body, signal });
    } catch (thrown) {
      if (signal.aborted) return;
      throw thrown;
    }
    upload.value = null;
    onCreated();
  });
  const choose = async () => {
    const file = await chooseFile('.jsonl,.ndjson,application/jsonl');
    if (file === null) return;
    fault.value = fileFault(file);
    if (fault.value !== null) return;
    sent.value = 0;
    upload.value = { file, progress: { id: null, parts: [] }, abort: new AbortController() };
    run();
  };
  const giveUp = ({ abort, progress: { id } }: Upload) => {
    abort.abort(new DOMException('The upload was given up.', 'AbortError'));
    upload.value = null;
    // The server forgets it after an hour in any case.
    if (id !== null) account.ask(`/v1/uploads/${id}/cancel`, { method: 'POST' }).catch(() => undefined);
  };
  const current = upload.value;
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
          <Button class="primary" icon="plus" text="Run a file…" onClick={() => void choose()} />
          <span class="quiet">
            JSON Lines, at most 200 MiB: <a href="/docs/guides/batches#input">their form</a>
          </span>
        </div>
      ) : (
        <Progress of={current} sent={sent.value} isBroken={failure !== null} onGiveUp={giveUp} />
      )}
      <Fault text={fault.value} />
      {failure !== null && current !== null && <Failure failure={failure} onRetry={run} />}
    </section>
  );
}

interface ProgressProps {
  readonly of: Upload;
  /** Bytes. */
  readonly sent: number;
  readonly isBroken: boolean;
  readonly onGiveUp: (upload: Upload) => void;
}

function Progress({ of: upload, sent, isBroken, onGiveUp }: ProgressProps) {
  const { file } = upload;
  const percent = Math.floor((100 * sent) / file.size);
  return (
    <div class="stack">
      <p>
        <bdi>{file.name}</bdi>{' '}
        <span class="quiet figures">
          {isBroken ? `stopped at ${percent} %` : percent < 100 ? `${percent} % sent` : 'is being checked'}
        </span>
      </p>
      <Bar label="Upload" value={sent} max={file.size} />
      <div class="row">
        <Button text="Give up" onClick={() => onGiveUp(upload)} />
      </div>
    </div>
  );
}
