import type { FakeOrigin } from '../support/fake-origin.ts';
import type { RunningWorker } from '../support/worker.ts';

/** One way to a certain error, and the whole of what the caller must then see. */
export interface ErrorCase {
  readonly name: string;
  send(worker: RunningWorker, origin: FakeOrigin): Promise<Response>;
  readonly type: string;
  readonly code: string;
  readonly param: string | null;
  readonly message: RegExp;
  /** Headers the answer must have; null = must not have. */
  readonly headers?: Readonly<Record<string, string | null>>;
}

/** POST of a body that would be fine but for `fields`. */
export const posting =
  (fields: Readonly<Record<string, unknown>>, init: RequestInit = {}): ErrorCase['send'] =>
  (worker) =>
    worker.post({ model: 'default', prompt: 'Hi', ...fields }, init);

/** POST of a body as it is; Node's fetch wants `duplex` for a streamed one, which workerd's types do not know. */
export const sending =
  (
    body: () => string | ReadableStream<Uint8Array>,
    more: Readonly<Record<string, string>> = {},
  ): ErrorCase['send'] =>
  (worker) => {
    const headers = { 'content-type': 'application/json', ...more };
    const init = { method: 'POST', headers, body: body(), duplex: 'half' };
    return worker.request('/v1/completions', init);
  };

/** An origin's error that is its own fault. */
export const serverError = (code: string, message = 'Said by the origin.') => ({
  message,
  type: 'server_error',
  param: null,
  code,
});

/** A good request to an origin that answers with this status and error. */
export const refusedByOrigin =
  (
    status: number,
    error: Readonly<Record<string, unknown>> | string,
    headers: Readonly<Record<string, string>> = {},
  ): ErrorCase['send'] =>
  (worker, origin) => {
    origin.script = (_, wire) => wire.refuse(status, typeof error === 'string' ? error : { error }, headers);
    return worker.post({ model: 'default', prompt: 'Hi' });
  };
