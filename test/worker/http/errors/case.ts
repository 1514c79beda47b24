import type { FakeOrigin } from '../../support/fake-origin.ts';
import { type RunningWorker, startWorker } from '../../support/worker.ts';

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

/** The same to a Worker of its own with these variables: a short wait is for those alone who are to be too late. */
export const toWorkerWith =
  (vars: Readonly<Record<string, string>>, send: ErrorCase['send']): ErrorCase['send'] =>
  async (_, origin) => {
    const worker = await startWorker(origin, vars);
    try {
      const response = await send(worker, origin);
      return new Response(await response.text(), response);
    } finally {
      await worker.stop();
    }
  };
