import { noResponse } from '../../api/client.ts';
import { failureOf } from '../../api/request-failure.ts';
import { type Account, askJson } from '../account.ts';

/** Uploads a file in parts. What broke continues with the part that is missing. */

/** Less than any plan of the platform allows in one request. */
const PART_BYTES = 8 * 1024 * 1024;
/** The server refuses larger files. */
const MAX_FILE_BYTES = 200 * 1024 * 1024;

/** How far an upload is. An attempt continues where the last one broke. */
export interface UploadProgress {
  /** Null = not begun. */
  id: string | null;
  /** Ids of the parts that the server has, in order. */
  readonly parts: string[];
}

export interface UploadRun {
  readonly account: Account;
  readonly file: File;
  readonly progress: UploadProgress;
  /** Takes the bytes that were sent so far; after a fault, those that the server keeps. */
  readonly onSent: (bytes: number) => void;
  readonly signal: AbortSignal;
}

/** Returns why a file cannot be a batch; null if it may be one. */
export function fileFault({ size }: Pick<File, 'size'>): string | null {
  if (size === 0) return 'The file is empty. Choose one with a JSON object per line.';
  if (size <= MAX_FILE_BYTES) return null;
  return `The file has ${Math.ceil(size / 1024 / 1024)} MiB; the limit is 200 MiB. Split it.`;
}

/** Returns the id of the file. @throws RequestFailure; the signal's reason if it is aborted */
export async function uploadFile(run: UploadRun): Promise<string> {
  const { account, file, progress, onSent, signal } = run;
  if (progress.id === null) {
    const body = { filename: file.name, purpose: 'batch', bytes: file.size };
    progress.id = (await askJson<{ id: string }>(account, '/v1/uploads', { body, signal })).id;
  }
  const path = `/v1/uploads/${progress.id}`;
  for (;;) {
    const start = progress.parts.length * PART_BYTES;
    onSent(Math.min(start, file.size));
    if (start >= file.size) break;
    const part = file.slice(start, start + PART_BYTES);
    try {
      progress.parts.push(await sendPart(run, `${path}/parts`, part, (sent) => onSent(start + sent)));
    } catch (thrown) {
      // The whole part will be sent again.
      onSent(start);
      throw thrown;
    }
  }
  const body = { part_ids: progress.parts };
  const done = await askJson<{ file: { id: string } }>(account, `${path}/complete`, { body, signal });
  return done.file.id;
}

/** `fetch` reports no progress of what it sends. */
function sendPart(
  { account, signal }: UploadRun,
  path: string,
  part: Blob,
  onSent: (bytes: number) => void,
): Promise<string> {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    const fail = async () => {
      const { status, responseText, statusText } = request;
      if (status === 0) throw noResponse(statusText || 'the connection broke');
      const retry = request.getResponseHeader('retry-after');
      const headers = retry === null ? undefined : { 'retry-after': retry };
      const failure = await failureOf(new Response(responseText, { status, ...(headers && { headers }) }));
      if (status === 401) account.refusal.value = failure;
      throw failure;
    };
    request.upload.onprogress = ({ loaded }) => onSent(Math.min(loaded, part.size));
    request.onload = () => {
      if (request.status === 200) resolve((JSON.parse(request.responseText) as { id: string }).id);
      else fail().catch(reject);
    };
    request.onerror = () => fail().catch(reject);
    request.onabort = () => reject(signal.reason);
    signal.addEventListener('abort', () => request.abort());
    request.open('POST', path);
    request.setRequestHeader('authorization', `Bearer ${account.apiKey}`);
    const form = new FormData();
    form.set('data', part, 'part');
    request.send(form);
  });
}
