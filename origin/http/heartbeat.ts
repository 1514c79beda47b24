import type { EngineAccess } from '../serving/loaded-model.ts';
import type { EventStream } from './event-stream.ts';

/** Milliseconds; proxies take a minute of silence for the end. */
export const HEARTBEAT_MS = 15_000;

/**
 * Lets a stream give signs of life while its request waits for a slot, or for a long prompt: the Worker would give it up,
 * and whatever stands between would cut it. Only while the engine reports that it works: of one that hangs, silence tells.
 * @returns ends it
 */
export function beatWhileWorking(
  stream: Pick<EventStream, 'beat'>,
  engine: Pick<EngineAccess, 'status'>,
  everyMs: number,
): () => void {
  // Every report brings a status of its own.
  let seen = engine.status;
  const timer = setInterval(() => {
    if (engine.status !== seen && stream.beat()) seen = engine.status;
  }, everyMs);
  return () => clearInterval(timer);
}
