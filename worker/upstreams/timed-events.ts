import { ApiError } from '../../shared/errors.ts';
import type { GenerationEvent } from '../../shared/generation.ts';
import type { EventStream } from './upstream.ts';

export interface EventTimeouts {
  /** Milliseconds from the acceptance to the first event. */
  readonly firstEventMs: number;
  /** Milliseconds between two events, queueing included. */
  readonly idleMs: number;
}

const silent = (): ApiError =>
  new ApiError('upstream_timeout', 'The model server stopped sending events.', {
    headers: { 'retry-after': '1' },
  });

/** The next batch, or a timeout. */
async function nextWithin(
  events: AsyncIterator<readonly GenerationEvent[]>,
  ms: number,
): Promise<IteratorResult<readonly GenerationEvent[]>> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(silent()), ms);
  try {
    return await Promise.race([events.next(), late.promise]);
  } finally {
    clearTimeout(timer);
  }
}

/** A stream of which the first batch has been seen. */
export interface OpenedStream {
  /** Empty when the stream ended without any event. */
  readonly first: readonly GenerationEvent[];
  readonly rest: EventStream;
}

/** Waits for the first batch. @throws ApiError 504 when it does not come in time, and what the stream throws */
export async function openStream(stream: EventStream, timeouts: EventTimeouts): Promise<OpenedStream> {
  const events = stream[Symbol.asyncIterator]();
  const { value, done } = await nextWithin(events, timeouts.firstEventMs);
  if (done) return { first: [], rest: (async function* () {})() };
  return { first: value, rest: remaining(events, timeouts.idleMs) };
}

async function* remaining(
  events: AsyncIterator<readonly GenerationEvent[]>,
  idleMs: number,
): AsyncGenerator<readonly GenerationEvent[]> {
  for (;;) {
    const { value, done } = await nextWithin(events, idleMs);
    if (done) return;
    yield value;
  }
}
