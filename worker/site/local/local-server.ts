import type { WebDevice } from '@continuo/origin/local/local-model.ts';
import { LOCAL_SUFFIX, type LocalServer } from '../api/client.ts';
import { RequestFailure } from '../api/request-failure.ts';
import type { FromThread, ToThread } from './messages.ts';

/** How far the opening of a model is. */
export type Opening =
  | { readonly state: 'loading'; readonly loaded: number; readonly total: number }
  | { readonly state: 'failed'; readonly message: string }
  | {
      readonly state: 'open';
      readonly server: LocalServer;
      readonly name: string;
      readonly context: number;
      readonly kept: boolean | null;
      readonly device: WebDevice;
      readonly card: string | null;
    };

export type Model = Extract<ToThread, { type: 'open' | 'open-built-in' }>;

/** A tab that slept asks again before it gives up: time passes for it only while it is awake. */
const ASK_MS = 5_000;
/** Pings in a row without a reply after which the thread is gone. Its longest step takes seconds. */
const MAX_SILENT_PINGS = 6;

interface Waiting {
  readonly resolve: (response: Response) => void;
  readonly reject: (reason: unknown) => void;
  stream: ReadableStreamDefaultController<Uint8Array> | null;
}

/**
 * Starts a thread that opens a model and runs completion requests.
 * @param onChange called at each change, also if the thread dies later
 * @returns ends the thread
 */
export function openLocal(model: Model, onChange: (opening: Opening) => void): () => void {
  const thread = new Worker(new URL('./thread/main.ts', import.meta.url), { type: 'module' });
  const send = (message: ToThread): void => thread.postMessage(message);
  const waiting = new Map<number, Waiting>();
  const encoder = new TextEncoder();
  let silentPings = 0;
  let open: Extract<Opening, { state: 'open' }> | null = null;
  const timer = setInterval(() => {
    if (waiting.size === 0) return;
    if (silentPings++ < MAX_SILENT_PINGS) send({ type: 'ping' });
    else fail('The thread of the model does not answer any more. The browser may have taken its memory.');
  }, ASK_MS);
  const end = (message: string) => {
    clearInterval(timer);
    thread.terminate();
    const failure = new RequestFailure('not-open', message);
    for (const { reject, stream } of waiting.values()) {
      reject(failure);
      stream?.error(failure);
    }
    waiting.clear();
  };
  const fail = (message: string) => {
    end(message);
    onChange({ state: 'failed', message });
  };
  thread.addEventListener('error', (event) => fail(event.message || 'The thread of the model has ended.'));
  thread.addEventListener('message', ({ data }: MessageEvent<FromThread>) => {
    silentPings = 0;
    if (data.type === 'pong') return;
    if (data.type === 'progress')
      return onChange({ state: 'loading', loaded: data.loaded, total: data.total });
    if (data.type === 'failed') return fail(data.message);
    if (data.type === 'opened') {
      const { type: _, ...rest } = data;
      open = { state: 'open', server: serverOf(data.name, send, waiting), ...rest };
      return onChange(open);
    }
    if (data.type === 'moved') {
      if (open !== null) onChange((open = { ...open, device: data.device }));
      return;
    }
    const request = waiting.get(data.id);
    if (request === undefined) return;
    if (data.type === 'head') {
      const { status, contentType } = data;
      const body = new ReadableStream<Uint8Array>({
        start: (stream) => void (request.stream = stream),
        cancel: () => {
          if (waiting.delete(data.id)) send({ type: 'abort', id: data.id });
        },
      });
      return request.resolve(new Response(body, { status, headers: { 'content-type': contentType } }));
    }
    if (data.type === 'text') return request.stream?.enqueue(encoder.encode(data.text));
    waiting.delete(data.id);
    request.stream?.close();
  });
  send(model);
  return () => end('It was stopped.');
}

let lastId = 0;

const serverOf = (
  name: string,
  send: (message: ToThread) => void,
  waiting: Map<number, Waiting>,
): LocalServer => ({
  id: name + LOCAL_SUFFIX,
  fetch: (body, dialect, signal) =>
    new Promise((resolve, reject) => {
      signal?.throwIfAborted();
      const id = ++lastId;
      waiting.set(id, { resolve, reject, stream: null });
      send({ type: 'request', id, body, dialect });
      signal?.addEventListener('abort', () => {
        const request = waiting.get(id);
        if (request === undefined) return;
        waiting.delete(id);
        send({ type: 'abort', id });
        request.stream?.error(signal.reason);
        reject(signal.reason);
      });
    }),
});
