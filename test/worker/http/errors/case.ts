import type { FakeOrigin } from '../../support/fake-origin.ts';
import { type RunningWorker, startWorker } from '../../support/worker.ts';

/** A request that causes an error, and the complete expected response. */
export interface ErrorCase {
  readonly name: string;
  send(worker: RunningWorker, origin: FakeOrigin): Promise<Response>;
  readonly type: string;
  readonly code: string;
  readonly param: string | null;
  readonly message: RegExp;
  /** Expected headers; null = absent. An expression fits what depends on the clock. */
  readonly headers?: Readonly<Record<string, string | RegExp | null>>;
}

/** Sends a valid body with these fields changed. */
export const posting =
  (fields: Readonly<Record<string, unknown>>, init: RequestInit = {}): ErrorCase['send'] =>
  (worker) =>
    worker.post({ model: 'default', prompt: 'Hi', ...fields }, init);

/** Sends a body unchanged. Node's fetch needs `duplex` for a streamed body; workerd's types lack it. */
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

/** An error of the origin itself. */
export const serverError = (code: string, message = 'Said by the origin.') => ({
  message,
  type: 'server_error',
  param: null,
  code,
});

/** Sends a valid request to an origin that answers with this status and error. */
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

/** Like `post`, to a separate Worker with these variables, for example with short time limits. */
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
