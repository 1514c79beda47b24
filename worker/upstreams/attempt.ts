import { type GenerationEvent, type GenerationRequest, isTerminal } from '@continuo/shared/generation.ts';
import { SilenceTimer } from '../timers/silence-timer.ts';
import type { AttemptContext, EventBatches, Upstream } from './upstream.ts';
import { causeOf, codeOf, interrupted, silent, verdictOf } from './upstream-errors.ts';
import type { Verdict } from './upstream-health.ts';

type Batch = readonly GenerationEvent[];

export interface EventTimeouts {
  /** Milliseconds from the acceptance to the first event. */
  readonly firstEventMs: number;
  /** Milliseconds between two reads, of events or heartbeats. */
  readonly idleMs: number;
}

/**
 * Sends a request to one upstream and yields its events. Fails if the upstream is silent for too long. A
 * caller that returns early ends the upstream's work.
 * @param judge takes the verdict about the upstream; only its first call counts
 * @throws ApiError for the client: the upstream's own, 504 if no event comes in time, 502 if the stream ends
 *   without one
 */
export async function* attempt(
  upstream: Upstream,
  request: GenerationRequest,
  context: AttemptContext,
  { firstEventMs, idleMs }: EventTimeouts,
  judge: (verdict: Verdict) => void,
  now: () => number,
): AsyncGenerator<Batch, undefined> {
  const { signal, after } = context;
  const abort = new AbortController();
  const silence = new SilenceTimer(now, after, () => abort.abort(silent()));
  const conclude = (verdict: Verdict): void => {
    // The platform keeps the listeners of a signal in memory until a full garbage collection.
    signal.removeEventListener('abort', onDeparture);
    judge(verdict);
  };
  // A request that was aborted from outside says nothing about the upstream.
  const onDeparture = (): void => {
    conclude('unknown');
    abort.abort(signal.reason);
  };
  if (signal.aborted) onDeparture();
  else signal.addEventListener('abort', onDeparture);
  let ended = false;
  try {
    const batches = await upstream.generate(request, {
      ...context,
      signal: abort.signal,
      abort: (reason) => abort.abort(reason),
    });
    const reader = batches[Symbol.asyncIterator]();
    for (let first = true; ; first = false) {
      silence.begin(first ? firstEventMs : idleMs);
      const { value, done } = await reader.next();
      silence.end();
      if (done) {
        ended = true;
        if (first) throw interrupted();
        // After a terminal event, this second verdict has no effect.
        conclude('failure');
        return;
      }
      const last = value.at(-1);
      if (last !== undefined && isTerminal(last)) {
        silence.stop();
        conclude(last.type === 'error' ? verdictOf(last.code) : 'success');
      }
      yield value;
    }
  } catch (thrown) {
    const cause = causeOf(abort.signal, thrown);
    conclude(verdictOf(codeOf(cause)));
    throw cause;
  } finally {
    silence.stop();
    if (!ended) abort.abort();
  }
}

/** Returns events of which the first ones have been read. */
export function withFirst(first: Batch, rest: AsyncIterator<Batch, undefined>): EventBatches {
  let unread: Batch | null = first;
  const next = (): Promise<IteratorResult<Batch, undefined>> => {
    if (unread === null) return rest.next();
    const value = unread;
    unread = null;
    return Promise.resolve({ value, done: false });
  };
  return { [Symbol.asyncIterator]: () => ({ next }) };
}
