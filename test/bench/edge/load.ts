import { setTimeout as sleep } from 'node:timers/promises';
import type { Pace } from './pace.ts';
import type { Path, Seen } from './path.ts';

/** What clients do at the same time; plain data, since it crosses processes. */
export interface Load {
  readonly clients: number;
  /** Of each client, one after the other. */
  readonly requests: number;
  readonly tokens: number;
  readonly stream: boolean;
  /** Milliseconds that the origin takes before an answer, about. */
  readonly startMs: number;
  readonly intervalMs: number;
  /** All clients begin in the same moment; otherwise evenly over the time that the origin takes. */
  readonly atOnce?: boolean;
}

/** Origins that take about so long, each time differently: clients that move in step would only wait for each other. */
const paceOf = ({ startMs, intervalMs }: Load, index: number): Pace => ({
  startMs: startMs * (0.5 + ((index * 37) % 101) / 101),
  intervalMs,
});

/** What was seen of each request, its `ms` without the time the origin took by its pace. */
export async function runLoad(path: Path, load: Load): Promise<Seen[]> {
  const { clients, requests, tokens, stream, startMs, atOnce = false } = load;
  const seen: Seen[] = [];
  let begun = 0;
  const client = async (_: unknown, index: number): Promise<void> => {
    if (!atOnce) await sleep((index * startMs) / clients);
    for (let count = 0; count < requests; count += 1) {
      const pace = paceOf(load, begun++);
      const { ms, delays } = await path.run(pace, tokens, stream);
      seen.push({ ms: ms - pace.startMs, delays });
    }
  };
  await Promise.all(Array.from({ length: clients }, client));
  return seen;
}
