import { DecodeBatchBuilder } from '../engine/scheduler.ts';
import type { ModelRunner } from '../model/model-runner.ts';

/** The plainest use of a runner: one sequence, or a few side by side, the most likely token each time. */

const NEVER = new AbortController().signal;

/** Fills a slot with tokens from position 0 on, in the runner's chunks. Returns the logits after the last one. */
export async function prefill(
  runner: ModelRunner,
  slot: number,
  tokens: readonly number[],
): Promise<Float32Array> {
  const { prefillChunk } = runner.shape;
  let logits = new Float32Array();
  for (let start = 0; start < tokens.length; start += prefillChunk) {
    const chunk = Int32Array.from(tokens.slice(start, start + prefillChunk));
    const last = start + chunk.length === tokens.length;
    const logitsAt = last ? Int32Array.of(chunk.length - 1) : new Int32Array();
    logits = Float32Array.from(await runner.prefill({ slot, start, tokens: chunk, logitsAt }, NEVER));
  }
  return logits.slice(0, runner.shape.vocabularySize);
}

/**
 * One decode step of neighbouring slots, in a batch as the engine's: a lone row gets an idle one beside it where the
 * runner wants that.
 * @param idlePosition where a slot without a row may be written without harm
 * @returns one copy of the logits per row
 */
export async function decode(
  runner: ModelRunner,
  firstSlot: number,
  rows: readonly { readonly token: number; readonly position: number }[],
  idlePosition: (slot: number) => number,
): Promise<Float32Array[]> {
  const { slots, minRows, vocabularySize } = runner.shape;
  const bySlot = Array.from({ length: slots }, (_, slot) => {
    const row = rows[slot - firstSlot];
    return row === undefined ? null : { slot, computed: row.position, lastToken: row.token };
  });
  const batch = new DecodeBatchBuilder(slots, minRows).build(bySlot, idlePosition);
  if (batch === null) return [];
  const logits = await runner.decode(batch);
  return rows.map((_, row) => {
    const start = (firstSlot + row - batch.firstSlot) * vocabularySize;
    return logits.slice(start, start + vocabularySize);
  });
}

/** The lowest of the ids with the highest logit. */
export function mostLikely(logits: Float32Array): number {
  let best = 0;
  for (let id = 1; id < logits.length; id += 1) if (logits[id]! > logits[best]!) best = id;
  return best;
}

/** The likeliest continuation of a prompt in slot 0: at most so many tokens, up to one that ends the text. */
export async function continueGreedily(
  runner: ModelRunner,
  prompt: readonly number[],
  most: number,
  ends: ReadonlySet<number>,
): Promise<number[]> {
  const tokens: number[] = [];
  let token = mostLikely(await prefill(runner, 0, prompt));
  while (!ends.has(token) && tokens.length < most) {
    const [logits] = await decode(runner, 0, [{ token, position: prompt.length + tokens.length }], () => 0);
    tokens.push(token);
    token = mostLikely(logits!);
  }
  return tokens;
}
