import { type LoadFigures, loadFigures, runLoad, type Trace } from '../../../origin/cli/load.ts';
import { mean, median } from './statistics.ts';
import type { Job, Target } from './target.ts';

export interface LoadResult extends LoadFigures {
  readonly concurrency: number;
  /** Mean rate of the bare loop at this batch and depth, before and after each wave as clocks drift. */
  readonly bareTokensPerSecond: number;
  /** Tokens per second while all streams of a wave were generating. */
  readonly decodeTokensPerSecond: number;
  /** See `shareOfBare`. */
  readonly shareOfBare: number;
  /** Mean number of tokens generated per stream meanwhile. With the prompt, it is the context of a step. */
  readonly meanGenerated: number;
}

export interface Span {
  readonly tokens: number;
  readonly ms: number;
  /** Mean number of tokens that a stream has generated in the middle of the span. */
  readonly meanGenerated: number;
}

/**
 * Returns tokens and milliseconds of the span in which every stream of the wave was generating. If the target
 * does not report tokens per event, the first event counts as one token and the others share the rest evenly.
 * This underestimates the rate, because events are shorter while other prompts are prefilled.
 */
export function commonSpan(wave: readonly Trace[]): Span {
  const begin = Math.max(...wave.map(({ events }) => events[0] ?? Number.POSITIVE_INFINITY));
  const end = Math.min(...wave.map(({ events }) => events.at(-1) ?? Number.NEGATIVE_INFINITY));
  if (!(end > begin)) return { tokens: 0, ms: 0, meanGenerated: 0 };
  let tokens = 0;
  let generated = 0;
  for (const { events, tokens: total, generated: counts } of wave) {
    const perEvent = (total - 1) / (events.length - 1);
    const tokensBy = (time: number) => {
      const last = events.filter((each) => each <= time).length - 1;
      return counts?.[last] ?? 1 + last * perEvent;
    };
    tokens += tokensBy(end) - tokensBy(begin);
    generated += (tokensBy(begin) + tokensBy(end)) / 2;
  }
  return { tokens, ms: end - begin, meanGenerated: generated / wave.length };
}

/** Figures that need no bare loop. */
export interface MeasuredLoad extends Omit<LoadResult, 'bareTokensPerSecond' | 'shareOfBare'> {
  /** By wave. */
  readonly decodeRates: readonly number[];
}

/**
 * Returns the median over waves of the wave's rate relative to the bare loop before and after it. The median
 * resists clock drift and short stalls.
 * @param decodeRates of each wave; NaN if its streams had no common span
 * @param bareRates before the first wave and after each
 */
export function shareOfBare(decodeRates: readonly number[], bareRates: readonly number[]): number {
  const shares = decodeRates.map((rate, wave) => rate / mean(bareRates.slice(wave, wave + 2)));
  return median(shares.filter((share) => !Number.isNaN(share)));
}

/**
 * Sends waves of `concurrency` simultaneous requests. With waves, the span in which the batch is exactly
 * `concurrency` is known and can be compared with the bare loop at that batch.
 */
export async function measureLoad(
  target: Target,
  concurrency: number,
  waves: number,
  job: (index: number) => Job,
  afterWave: () => void,
): Promise<MeasuredLoad> {
  const traces: Trace[] = [];
  const spans: Span[] = [];
  let totalMs = 0;
  for (let wave = 0; wave < waves; wave += 1) {
    const begun = performance.now();
    const done = await runLoad(concurrency, concurrency, (index) =>
      target.run(job(wave * concurrency + index)),
    );
    totalMs += performance.now() - begun;
    spans.push(commonSpan(done));
    traces.push(...done);
    afterWave();
  }
  return {
    ...loadFigures(traces, totalMs),
    concurrency,
    decodeTokensPerSecond:
      (mean(spans.map((span) => span.tokens)) / mean(spans.map((span) => span.ms))) * 1000,
    decodeRates: spans.map(({ tokens, ms }) => (tokens / ms) * 1000),
    meanGenerated: mean(spans.map((span) => span.meanGenerated)),
  };
}
