import { ModelError } from '../config/model-json.ts';
import type { ModelRunner } from '../model-runner.ts';
import { oneLine } from '../ort/graph-file.ts';

/** Runs at the start, which show what would otherwise fail or spoil the first request. */

/** A chunk split in two may round otherwise; beyond this part of the logits' range it computes something else. */
const ROUNDING = 0.05;

/**
 * One token through slot 0.
 * @throws ModelError when it fails or gives no numbers
 */
export async function requireNumbers(runner: ModelRunner, file: string): Promise<void> {
  const [logits] = await inFile(file, () => prefillAll(runner, [[0]]));
  if (!logits!.every(Number.isFinite)) {
    throw new ModelError(`${file} gives logits that are not finite numbers`);
  }
}

/**
 * Whether several tokens after a past get the logits they get in a prompt fed whole.
 * @throws ModelError when the run fails with a past of one token, which every decoder must take
 */
export async function readsSeveralAfterPast(runner: ModelRunner, file: string): Promise<boolean> {
  const { vocabularySize, prefillChunk } = runner.shape;
  if (prefillChunk < 2) return false;
  const length = Math.min(6, prefillChunk);
  const half = Math.floor(length / 2);
  const prompt = Array.from({ length }, (_, index) => (7 * index + 1) % vocabularySize);
  const [whole] = await inFile(file, () => prefillAll(runner, [prompt]));
  await inFile(file, () => prefillAll(runner, [prompt.slice(0, 1), prompt.slice(1, 2)]));
  const split = await prefillAll(runner, [prompt.slice(0, half), prompt.slice(half)]).catch(() => null);
  if (split === null) return false;
  const most = whole!.reduce((largest, logit) => Math.max(largest, logit), -Infinity);
  const least = whole!.reduce((smallest, logit) => Math.min(smallest, logit), Infinity);
  const agrees = (logit: number, index: number) =>
    Math.abs(logit - whole![index]!) <= ROUNDING * (most - least);
  return split.flatMap((logits) => [...logits]).every(agrees);
}

/** Feeds the parts one after the other; the logits of all positions of each. */
async function prefillAll(
  runner: ModelRunner,
  parts: readonly (readonly number[])[],
): Promise<Float32Array[]> {
  const results: Float32Array[] = [];
  let start = 0;
  for (const part of parts) {
    const tokens = Int32Array.from(part);
    const logitsAt = Int32Array.from(part.keys());
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
    throw new ModelError(`ONNX Runtime cannot run ${file}: ${oneLine(error)}`);
  }
}
