import { oneLine } from '@continuo/shared/error-details.ts';
import { ModelError } from '../config/model-json.ts';
import type { ModelRunner } from '../model-runner.ts';
import { differenceOf } from '../runner/compare-runners.ts';

/** Runs at the start that find faults before the first request does. */

/** Rounding of a split chunk, as a fraction of the logits' range. More is a different result. */
const ROUNDING = 0.05;

interface ProbedRuns {
  /**
   * Place of the runs in their slots. Workspaces of attention grow with the length, so a device must probe
   * the end. The CPU's memory is taken only where it is used, so the CPU probes the start.
   */
  readonly place: 'start' | 'end';
  /** Of the largest run of a prompt. */
  readonly chunks: number;
}

/**
 * Runs the largest batch, then the largest run of a prompt, then one more token. Runs of one token and one
 * row can use other kernels. The largest runs come first so that the device's arena gets memory that all
 * later runs fit into.
 * @throws ModelError if a run fails or its logits are not finite
 */
export async function requireFiniteLogits(
  runner: ModelRunner,
  file: string,
  { place, chunks }: ProbedRuns,
): Promise<void> {
  const { slots, contextLength, prefillChunk, vocabularySize } = runner.shape;
  const longest = chunks * prefillChunk;
  const tokenAt = (_: unknown, at: number) => (7 * at) % vocabularySize;
  const requireFinite = (logits: Float32Array) => {
    if (logits.every(Number.isFinite)) return;
    throw new ModelError(`${file} gives logits that are not finite numbers`);
  };
  const tokens = Int32Array.from({ length: slots }, tokenAt);
  const last = place === 'end' ? contextLength - 1 : 0;
  const batch = { firstSlot: 0, rows: slots, tokens, positions: new Int32Array(slots).fill(last) };
  beginAt(runner, slots, last);
  requireFinite(await inFile(file, async () => runner.decode(batch)));
  const chunk = Array.from({ length: Math.max(1, Math.min(longest, contextLength - 1)) }, tokenAt);
  const prompt = contextLength > chunk.length ? [chunk, [0]] : [chunk];
  const start = place === 'end' ? contextLength - prompt.flat().length : 0;
  beginAt(runner, 1, start);
  for (const logits of await inFile(file, () => prefillAll(runner, prompt, start))) requireFinite(logits);
}

/** Gives the first slots a state from which a run can go on. */
function beginAt({ states }: ModelRunner, slots: number, position: number): void {
  if (!states || position === 0) return;
  const zeros = new Uint8Array(states.bytes);
  for (let slot = 0; slot < slots; slot++) states.write(slot, position, zeros);
}

/**
 * Reports whether several tokens after a past get the same logits as in a whole prompt.
 * @throws ModelError if a run with one token after a past fails, which every decoder must support
 */
export async function readsSeveralAfterPast(runner: ModelRunner, file: string): Promise<boolean> {
  const { vocabularySize, prefillChunk } = runner.shape;
  if (prefillChunk < 2) return false;
  const length = Math.min(6, prefillChunk);
  const half = Math.floor(length / 2);
  const prompt = Array.from({ length }, (_, index) => (7 * index + 1) % vocabularySize);
  const whole = joined(await inFile(file, () => prefillAll(runner, [prompt])));
  await inFile(file, () => prefillAll(runner, [prompt.slice(0, 1), prompt.slice(1, 2)]));
  const split = await prefillAll(runner, [prompt.slice(0, half), prompt.slice(half)]).catch(() => null);
  return split !== null && differenceOf(joined(split), whole) <= ROUNDING;
}

const joined = (parts: readonly Float32Array[]): Float32Array =>
  Float32Array.from(parts.flatMap((part) => [...part]));

/** Runs the parts of a prompt in order, from a position on; returns all logits, or as many as runs have. */
async function prefillAll(
  runner: ModelRunner,
  parts: readonly (readonly number[])[],
  from = 0,
): Promise<Float32Array[]> {
  const results: Float32Array[] = [];
  let start = from;
  for (const part of parts) {
    const tokens = Int32Array.from(part);
    const first = Math.max(0, part.length - (runner.shape.maxPromptLogits ?? part.length));
    const logitsAt = Int32Array.from({ length: part.length - first }, (_, row) => first + row);
    const logits = await runner.prefill({ slot: 0, start, tokens, logitsAt }, new AbortController().signal);
    results.push(logits.slice());
    start += part.length;
  }
  return results;
}

async function inFile<T>(file: string, run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    throw new ModelError(`ONNX Runtime cannot run ${file}: ${oneLine(error)}`, { cause: error });
  }
}
