/** The load generator of `continuo bench` and of the project's own benchmarks. */

/** Times of one request, in milliseconds of a monotonic clock. */
export interface Trace {
  readonly sent: number;
  /** One entry per event that carried text or tokens. */
  readonly events: readonly number[];
  /** Tokens generated until each of these events, if the target reports them. */
  readonly generated?: readonly number[];
  readonly ended: number;
  readonly tokens: number;
  /** HTTP status, or 0 if the connection broke; 200 with `error` if the stream ended in an error event. */
  readonly status: number;
  readonly error: string | null;
  readonly text?: string;
}

export interface Percentiles {
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
}

export interface LoadFigures {
  readonly requests: number;
  readonly errors: number;
  /** Distinct errors. */
  readonly reasons: readonly string[];
  /** All tokens over the whole time, prefill included. */
  readonly tokensPerSecond: number;
  /** Requests that ended without an error. */
  readonly requestsPerSecond: number;
  /** Milliseconds from sending to the first event. */
  readonly timeToFirstToken: Percentiles;
  /** As `vllm bench serve`: milliseconds from the first event to the last, per token after the first. */
  readonly perToken: Percentiles;
  /** Milliseconds between events of one stream. */
  readonly interToken: Percentiles;
}

/** Keeps `concurrency` requests running until `total` have ended. */
export async function runLoad(
  concurrency: number,
  total: number,
  run: (index: number) => Promise<Trace>,
): Promise<Trace[]> {
  const traces: Trace[] = [];
  let begun = 0;
  const caller = async (): Promise<void> => {
    while (begun < total) traces.push(await run(begun++));
  };
  await Promise.all(Array.from({ length: concurrency }, caller));
  return traces;
}

/** @param ms time of the whole load */
export function loadFigures(traces: readonly Trace[], ms: number): LoadFigures {
  const isGood = ({ status, error }: Trace) => status === 200 && error === null;
  const good = traces.filter(isGood);
  const bad = traces.filter((trace) => !isGood(trace));
  const tokens = good.reduce((sum, trace) => sum + trace.tokens, 0);
  return {
    requests: traces.length,
    errors: bad.length,
    reasons: [...new Set(bad.map(({ status, error }) => error ?? `HTTP ${status}`))],
    tokensPerSecond: (tokens / ms) * 1000,
    requestsPerSecond: (good.length / ms) * 1000,
    timeToFirstToken: percentiles(
      good.flatMap(({ sent, events: [at] }) => (at === undefined ? [] : [at - sent])),
    ),
    perToken: percentiles(
      good.flatMap(({ events, tokens }) =>
        tokens > 1 && events.length > 1 ? [(events.at(-1)! - events[0]!) / (tokens - 1)] : [],
      ),
    ),
    interToken: percentiles(
      good.flatMap(({ events }) => events.slice(1).map((at, index) => at - events[index]!)),
    ),
  };
}

export const percentiles = (values: readonly number[]): Percentiles => ({
  p50: quantile(values, 0.5),
  p95: quantile(values, 0.95),
  p99: quantile(values, 0.99),
});

/** The q-quantile (0…1) by linear interpolation between closest ranks; NaN for no values. */
export function quantile(values: readonly number[], q: number): number {
  if (values.length === 0) return Number.NaN;
  const sorted = Float64Array.from(values).sort();
  const rank = (sorted.length - 1) * q;
  const low = sorted[Math.floor(rank)] as number;
  const high = sorted[Math.ceil(rank)] as number;
  return low + (high - low) * (rank - Math.floor(rank));
}
