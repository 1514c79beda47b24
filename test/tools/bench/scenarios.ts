import { median, type Percentiles, percentiles } from './statistics.ts';
import type { Job, Target } from './target.ts';

/** Measurements of single figures. */

const firstToken = async (target: Target, job: Job): Promise<number> => {
  const { sent, events, error, status } = await target.run(job);
  if (status !== 200 || error !== null)
    throw new Error(`${target.name}: status ${status}, ${error ?? 'no error'}`);
  return (events[0] ?? Number.NaN) - sent;
};

export interface PrefixResult {
  readonly coldMs: number;
  readonly cachedMs: number;
}

/** Median time to first token of a prompt, cold and with all but its last tokens cached. */
export async function measurePrefixHit(
  target: Target,
  prompt: (seed: number) => readonly number[],
  suffix: (seed: number) => readonly number[],
  repeats: number,
): Promise<PrefixResult> {
  const cold: number[] = [];
  const cached: number[] = [];
  for (let repeat = 0; repeat < repeats; repeat += 1) {
    const shared = prompt(1000 + repeat);
    const job = (seed: number): Job => ({
      prompt: [...shared, ...suffix(seed)],
      maxTokens: 1,
      cachePrompt: true,
    });
    cold.push(await firstToken(target, job(2 * repeat)));
    cached.push(await firstToken(target, job(2 * repeat + 1)));
  }
  return { coldMs: median(cold), cachedMs: median(cached) };
}

/** Prompt tokens per second of one long prompt without other load (median of the repeats). */
export async function measurePrefill(
  target: Target,
  prompt: (seed: number) => readonly number[],
  repeats: number,
): Promise<number> {
  const rates: number[] = [];
  for (let repeat = 0; repeat < repeats; repeat += 1) {
    const tokens = prompt(5000 + repeat);
    rates.push((tokens.length / (await firstToken(target, { prompt: tokens, maxTokens: 1 }))) * 1000);
  }
  return median(rates);
}

export interface InterferenceResult {
  readonly quiet: Percentiles;
  /** Inter-token gaps of the running streams during the prefill of the long prompt. */
  readonly during: Percentiles;
}

/** Measures inter-token gaps of `streams` running streams before and during the prefill of a long prompt. */
export async function measureInterference(
  target: Target,
  streams: number,
  running: (index: number) => Job,
  long: Job,
  settleMs: number,
): Promise<InterferenceResult> {
  const open = Array.from({ length: streams }, (_, index) => target.run(running(index)));
  await new Promise((resolve) => setTimeout(resolve, settleMs));
  const intruder = await target.run(long);
  const until = intruder.events[0] ?? intruder.ended;
  const quiet: number[] = [];
  const during: number[] = [];
  for (const { events } of await Promise.all(open)) {
    for (let index = 1; index < events.length; index += 1) {
      const [from, to] = [events[index - 1] as number, events[index] as number];
      if (to < intruder.sent) quiet.push(to - from);
      else if (from >= intruder.sent && to <= until) during.push(to - from);
    }
  }
  return { quiet: percentiles(quiet), during: percentiles(during) };
}
