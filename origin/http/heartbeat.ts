import type { EngineAccess } from '../serving/load-model.ts';
import type { EventStream } from './event-stream.ts';

/** Milliseconds; common proxies cut a connection after 60 s of silence. */
export const HEARTBEAT_MS = 15_000;

/**
 * Sends heartbeats while the engine works, for requests that wait in the queue or for a long prefill. A hung engine
 * sends no heartbeat, so the Worker gives the stream up.
 * @returns stops the heartbeats
 */
export function startHeartbeat(
  stream: Pick<EventStream, 'beat'>,
  engine: Pick<EngineAccess, 'status'>,
  everyMs: number,
): () => void {
  // Each report of the engine replaces the status object.
  let seen = engine.status;
  const timer = setInterval(() => {
    if (engine.status !== seen && stream.beat()) seen = engine.status;
  }, everyMs);
  return () => clearInterval(timer);
}
