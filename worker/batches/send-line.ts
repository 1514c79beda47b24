import type { BatchOrder } from '../env/batch-protocol.ts';
import type { LoopbackWorker } from '../env/replay-protocol.ts';

/** The response to a line's request. */
export interface LineResponse {
  readonly status: number;
  readonly requestId: string;
  /** JSON. */
  readonly body: string;
  /** The same request may succeed later. */
  readonly mayRetry: boolean;
  /** Null if the response names no time. */
  readonly retryAfterMs: number | null;
}

/**
 * Runs a line as a request of the key that created the batch, through the Worker's own entry point.
 * @param exports the Worker's exports
 * @throws if the response breaks off
 */
export async function sendLine(
  exports: unknown,
  { keyId, batch }: BatchOrder,
  body: Uint8Array,
): Promise<LineResponse> {
  const worker = (exports as { default: LoopbackWorker }).default({ props: { batchKey: keyId } });
  // The address only has to be one.
  const response = await worker.fetch(`https://batch.invalid${batch.endpoint}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body,
  });
  return {
    status: response.status,
    requestId: response.headers.get('x-request-id') ?? '',
    body: (await response.text()).trim(),
    mayRetry: response.headers.get('x-should-retry') === 'true',
    retryAfterMs: waitOf(response.headers),
  };
}

const waitOf = (headers: Headers): number | null =>
  Number(headers.get('retry-after-ms') ?? 1_000 * Number(headers.get('retry-after'))) || null;
