import { setTimeout as sleep } from 'node:timers/promises';
import type { Pace } from './pace.ts';
import type { Path, Seen } from './path.ts';

/** What all clients do at the same time; plain data, because it crosses processes. */
export interface Load {
  readonly clients: number;
  /** Requests of each client, one after the other. */
  readonly requests: number;
  readonly tokens: number;
  readonly stream: boolean;
  /** Mean time of the origin before an answer, in milliseconds. */
  readonly startMs: number;
  /** Milliseconds between two events; 0 = all events in one write. */
  readonly intervalMs: number;
  readonly tokensPerEvent: number;
  /**
   * All clients start at once; otherwise evenly spread over `startMs`, or over `intervalMs`. Events of
   * streams in step would wait for each other, as long as it takes to admit requests.
   */
  readonly atOnce?: boolean;
}

/** Varies `startMs`, because clients in lockstep would only wait for each other. */
const paceOf = ({ startMs, intervalMs, tokensPerEvent }: Load, index: number): Pace => ({
  startMs: startMs * (0.5 + ((index * 37) % 101) / 101),
  intervalMs,
  tokensPerEvent,
});

/** Runs the load. `ms` of each request excludes the origin's `startMs`. */
export async function runLoad(path: Path, load: Load): Promise<Seen[]> {
  const { clients, requests, tokens, stream, startMs, intervalMs, atOnce = false } = load;
  const seen: Seen[] = [];
  let begun = 0;
  const client = async (_: unknown, index: number): Promise<void> => {
    if (!atOnce) await sleep((index * (startMs || intervalMs)) / clients);
    for (let count = 0; count < requests; count += 1) {
      const pace = paceOf(load, begun++);
      const { ms, delays } = await path.run(pace, tokens, stream);
      seen.push({ ms: ms - pace.startMs, delays });
    }
  };
  await Promise.all(Array.from({ length: clients }, client));
  return seen;
}
