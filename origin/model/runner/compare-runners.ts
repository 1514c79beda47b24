import type { ModelRunner } from '../model-runner.ts';

/** Rounding of logits on a device, as a fraction of their range. More is a different result. */
const DEVICE_ROUNDING = 0.03;
/** Greedy tokens that follow a text. */
const COMPARED_TOKENS = 8;

const NEVER = new AbortController().signal;

/** A device, and the processor that it must agree with. */
export type ComparedRunners = readonly [device: ModelRunner, processor: ModelRunner];

interface Comparison {
  /** "logits differ by 3.1 % of their range"; null = they agree. */
  readonly fault: string | null;
  /** The processor's greedy token. */
  readonly best: number;
}

interface RunComparison extends Comparison {
  /** Whether the device has the same greedy token. Tokens with nearly the same logits may change places. */
  readonly hasSameToken: boolean;
  /** Milliseconds of the runs. */
  readonly took: readonly [device: number, processor: number];
}

interface TextComparison extends Comparison {
  /** Tokens of slot 0 that both have computed. `best` follows them. */
  readonly length: number;
  /** Of the greedy tokens. */
  readonly runs: readonly RunComparison[];
}

/** Makes the same run on both. @param now milliseconds */
export async function compareRun(
  runners: ComparedRunners,
  run: (runner: ModelRunner) => Float32Array | Promise<Float32Array>,
  now: () => number = () => 0,
): Promise<RunComparison> {
  const [logits, took] = [[] as Float32Array[], [] as number[]];
  for (const runner of runners) {
    const begun = now();
    logits.push((await run(runner)).slice());
    took.push(now() - begun);
  }
  const [device, processor] = logits as [Float32Array, Float32Array];
  return { ...compareLogits(device, processor), took: took as [number, number] };
}

/** Computes a text in slot 0, and greedy tokens of the processor after it, until logits differ. */
export async function compareText(
  runners: ComparedRunners,
  prompt: Int32Array,
  now?: () => number,
): Promise<TextComparison> {
  const shapes = runners.map(({ shape }) => shape);
  const least = (field: 'contextLength' | 'prefillChunk') => Math.min(...shapes.map((shape) => shape[field]));
  const text = prompt.subarray(0, least('contextLength') - COMPARED_TOKENS - 1);
  const step = least('prefillChunk');
  let last: Comparison = { fault: null, best: 0 };
  for (let start = 0; start < text.length && last.fault === null; start += step) {
    const tokens = text.subarray(start, start + step);
    const chunk = { slot: 0, start, tokens, logitsAt: Int32Array.of(tokens.length - 1) };
    last = await compareRun(runners, (runner) => runner.prefill(chunk, NEVER), now);
  }
  const runs: RunComparison[] = [];
  while (runs.length < COMPARED_TOKENS && last.fault === null) {
    const row = oneRow(0, last.best, text.length + runs.length);
    const run = await compareRun(runners, (runner) => runner.decode(row, NEVER), now);
    runs.push(run);
    last = run;
  }
  return { fault: last.fault, best: last.best, length: text.length + runs.length, runs };
}

export const oneRow = (slot: number, token: number, position: number) => ({
  firstSlot: slot,
  rows: 1,
  tokens: Int32Array.of(token),
  positions: Int32Array.of(position),
});

export function compareLogits(
  device: Float32Array,
  processor: Float32Array,
): Pick<RunComparison, 'fault' | 'best' | 'hasSameToken'> {
  const share = differenceOf(device, processor);
  let [best, ofDevice] = [0, 0];
  for (let token = 0; token < processor.length; token++) {
    if (processor[token]! > processor[best]!) best = token;
    if (device[token]! > device[ofDevice]!) ofDevice = token;
  }
  const fault = share <= DEVICE_ROUNDING ? null : `logits differ by ${percent(share)} of their range`;
  return { fault, best, hasSameToken: ofDevice === best };
}

/** Returns the largest difference of logits, as a fraction of the range of the expected ones. */
export function differenceOf(logits: Float32Array, expected: Float32Array): number {
  let [largest, most, least] = [0, Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY];
  for (let at = 0; at < expected.length; at++) {
    most = Math.max(most, expected[at]!);
    least = Math.min(least, expected[at]!);
    largest = Math.max(largest, Math.abs(logits[at]! - expected[at]!));
  }
  return largest === 0 ? 0 : largest / (most - least);
}

const percent = (share: number): string => `${(100 * share).toFixed(1)} %`;
