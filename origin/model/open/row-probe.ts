import type { ModelRunner, ModelShape, PrefillChunk } from '../model-runner.ts';
import { differenceOf } from '../runner/compare-runners.ts';
import type { OrtRunner } from '../runner/ort-runner.ts';
import { type AllocateLogits, MAX_PREFILL_CHUNKS } from '../runner/runner-options.ts';
import { SingleRowRunner } from '../runner/single-row-runner.ts';

/**
 * ONNX Runtime has separate kernels for a single row. On some processors and for some weights they round
 * differently (4-bit weights without AVX-512, any weights without an accuracy level). This probe runs the
 * model to find out.
 */

/** Returns a runner on a CPU whose rows have the same bits alone and with others. Owns the given one. */
export async function withProbedRows(
  runner: OrtRunner,
  allocateLogits: AllocateLogits | undefined,
): Promise<ModelRunner> {
  const rows = await findRows(runner);
  if (rows === null) return new SingleRowRunner(runner, allocateLogits);
  // Also for the logits of prompts.
  runner.addProbed(rows);
  if (runner.shape.slots % rows.rowMultiple > 0) return new SingleRowRunner(runner, allocateLogits);
  runner.addProbed({ maxPrefillChunks: await findMaxPrefillChunks(runner) });
  return runner;
}

/** Kernels process rows in groups of two, three or four, and the rest singly. */
const BATCHES = [2, 3, 4, 5, 7];
/** The same for runs of which no row is left over. */
const EVEN_BATCHES = [2, 4, 6, 10, 14];

/**
 * Returns the numbers of rows with which each row's bits are independent of the number of rows; null if they
 * always depend on it or on the other rows.
 */
export async function findRows(
  runner: ModelRunner,
): Promise<Required<Pick<ModelShape, 'minRows' | 'rowMultiple'>> | null> {
  const { slots, vocabularySize } = runner.shape;
  const reference = await firstTokens(runner, 0, slots);
  const areSame = async (batches: readonly number[]) => {
    for (const rows of batches)
      if (rows < slots && !sameBits(await firstTokens(runner, 0, rows), reference)) return false;
    return true;
  };
  // An odd number leaves the last row over.
  const end = reference.subarray(Math.max(0, slots - 2) * vocabularySize);
  const isEndSame = async () => slots < 3 || sameBits(await firstTokens(runner, slots - 2, 2), end);
  if ((await areSame(BATCHES)) && (await isEndSame())) {
    const minRows = (await areSame([1])) ? 1 : 2;
    // Two slots do not show what three rows are.
    return { minRows, rowMultiple: slots === 2 ? minRows : 1 };
  }
  return (await areSame(EVEN_BATCHES)) ? { minRows: 2, rowMultiple: 2 } : null;
}

/** Returns the logits after one token in each of some slots, a different one per slot. */
async function firstTokens(runner: ModelRunner, firstSlot: number, rows: number): Promise<Float32Array> {
  const { vocabularySize } = runner.shape;
  const tokens = Int32Array.from({ length: rows }, (_, row) => (7 * (firstSlot + row) + 1) % vocabularySize);
  const batch = { firstSlot, rows, tokens, positions: new Int32Array(rows) };
  return (await runner.decode(batch)).slice();
}

/** The probe's last chunk lacks so many positions, so that neither run has a round number of rows. */
const MISSING_POSITIONS = 3;

/** What is compared of a prompt. */
interface Computed {
  /** KV and state. */
  readonly bytes: Uint8Array;
  /** Of the last token. */
  readonly logits: Float32Array;
}

/** Kernels of a device may round by the shape of a run, so this part of the logits' range is no fault. */
const ROUNDING = 0.01;

const areSameBits = (apart: Computed, together: Computed): boolean =>
  apart.bytes.every((byte, at) => byte === together.bytes[at]) && sameBits(apart.logits, together.logits);

/** For devices. */
export const areNear = ({ logits }: Computed, together: Computed): boolean =>
  differenceOf(together.logits, logits) <= ROUNDING;

/**
 * Returns the chunks that one prefill run may cover: MAX_PREFILL_CHUNKS if KV, state and logits are then as
 * those of a run for each chunk, else 1.
 */
export async function findMaxPrefillChunks(runner: ModelRunner, areEqual = areSameBits): Promise<number> {
  const { prefillChunk, contextLength, vocabularySize } = runner.shape;
  const length = MAX_PREFILL_CHUNKS * prefillChunk - MISSING_POSITIONS;
  if (prefillChunk <= MISSING_POSITIONS + 1 || length > contextLength) return 1;
  const tokens = Int32Array.from({ length }, (_, at) => (7 * at + 1) % vocabularySize);
  const apart = await prefilled(runner, tokens, prefillChunk);
  const together = await prefilled(runner, tokens, length);
  return areEqual(apart, together) ? MAX_PREFILL_CHUNKS : 1;
}

/** Returns whether several prompts of one run have the logits that each has in a run of its own. */
export async function findJoinsPrompts(runner: ModelRunner): Promise<boolean> {
  const { prefillChunk, slots, vocabularySize } = runner.shape;
  // The last prompt needs no padding, and the middle one the most.
  const lengths = [Math.ceil(prefillChunk / 8), 2, Math.floor(prefillChunk / 4)];
  if (runner.prefillTogether === undefined || slots < lengths.length || lengths.some((length) => length < 2))
    return false;
  const prompts = lengths.map((length, slot): PrefillChunk => {
    const tokens = Int32Array.from({ length }, (_, at) => (7 * at + 5 * slot + 1) % vocabularySize);
    return { slot, start: 0, tokens, logitsAt: Int32Array.of(length - 1) };
  });
  const never = new AbortController().signal;
  const apart: Float32Array[] = [];
  for (const prompt of prompts) apart.push((await runner.prefill(prompt, never)).slice());
  const together = await runner.prefillTogether(prompts, never);
  let start = 0;
  return apart.every((logits) => {
    const joined = together.subarray(start, (start += logits.length));
    return differenceOf(joined, logits) <= ROUNDING;
  });
}

/**
 * Returns KV and state of a prompt, computed in runs of `step` positions, and the logits of its last one.
 */
async function prefilled(runner: ModelRunner, tokens: Int32Array, step: number): Promise<Computed> {
  const kvLength = tokens.length * runner.kvBytes.positionBytes;
  const bytes = new Uint8Array(kvLength + (runner.states?.bytes ?? 0));
  for (let start = 0; ; start += step) {
    const part = tokens.subarray(start, start + step);
    const isLast = start + step >= tokens.length;
    const logitsAt = Int32Array.from(isLast ? [part.length - 1] : []);
    const chunk = { slot: 0, start, tokens: part, logitsAt };
    const logits = await runner.prefill(chunk, new AbortController().signal);
    if (!isLast) continue;
    runner.kvBytes.read(0, 0, tokens.length, bytes.subarray(0, kvLength));
    runner.states?.read(0, tokens.length, bytes.subarray(kvLength));
    return { bytes, logits: logits.slice() };
  }
}

/** Reports whether `some` equals the beginning of `all` bit for bit. */
export function sameBits(some: Float32Array, all: Float32Array): boolean {
  const [bits, others] = [some, all].map(
    ({ buffer, byteOffset }) => new Uint32Array(buffer, byteOffset, some.length),
  );
  return bits!.every((word, at) => word === others![at]);
}
