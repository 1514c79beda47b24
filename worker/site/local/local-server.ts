import { LOCAL_SUFFIX, type LocalServer } from '../api/client.ts';
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
    };

export type Model = Extract<ToThread, { type: 'open' | 'open-built-in' }>;

interface Waiting {
  readonly resolve: (response: Response) => void;
  readonly reject: (reason: unknown) => void;
  stream: ReadableStreamDefaultController<Uint8Array> | null;
}

/**
 * Starts a thread that opens a model and answers completion requests.
 * @param onChange called at each change, also if the thread dies later
 * @returns ends the thread
 */
export function openLocal(model: Model, onChange: (opening: Opening) => void): () => void {
  const thread = new Worker(new URL('./thread/main.ts', import.meta.url), { type: 'module' });
  const send = (message: ToThread): void => thread.postMessage(message);
  const waiting = new Map<number, Waiting>();
  const encoder = new TextEncoder();
  const fail = (message: string) => {
    thread.terminate();
    for (const { reject, stream } of waiting.values()) {
      reject(new TypeError(message));
      stream?.error(new TypeError(message));
    }
    waiting.clear();
    onChange({ state: 'failed', message });
  };
  thread.addEventListener('error', (event) => fail(event.message || 'The thread of the model has ended.'));
  thread.addEventListener('message', ({ data }: MessageEvent<FromThread>) => {
    if (data.type === 'progress')
      return onChange({ state: 'loading', loaded: data.loaded, total: data.total });
    if (data.type === 'failed') return fail(data.message);
    if (data.type === 'opened') {
      const { name, context, kept } = data;
      return onChange({ state: 'open', server: serverOf(name, send, waiting), name, context, kept });
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
  return () => thread.terminate();
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
