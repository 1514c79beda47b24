import { DecodeBatchBuilder } from '../../engine/scheduling/step-plan.ts';
import type { ModelRunner } from '../../model/model-runner.ts';
import { argmax } from '../../sampling/argmax.ts';

/** Prefill, decode and greedy generation directly on a model runner, without the engine. */

const NEVER = new AbortController().signal;

/**
 * Prefills a slot in the runner's chunks. Returns the logits of the last token.
 * @param from first position that the slot does not hold yet; a multiple of the chunk
 */
export async function prefill(
  runner: ModelRunner,
  slot: number,
  tokens: readonly number[],
  from = 0,
): Promise<Float32Array> {
  const { prefillChunk } = runner.shape;
  let logits = new Float32Array();
  for (let start = from; start < tokens.length; start += prefillChunk) {
    const chunk = Int32Array.from(tokens.slice(start, start + prefillChunk));
    const isLast = start + chunk.length === tokens.length;
    const logitsAt = isLast ? Int32Array.of(chunk.length - 1) : new Int32Array();
    logits = Float32Array.from(await runner.prefill({ slot, start, tokens: chunk, logitsAt }, NEVER));
  }
  return logits.slice(0, runner.shape.vocabularySize);
}

/**
 * Runs one decode step of adjacent slots in the batch that the engine would build, idle rows included.
 * @param idlePosition Position of a slot that an idle row may overwrite
 * @returns a copy of the logits of each row
 */
export async function decode(
  runner: ModelRunner,
  firstSlot: number,
  rows: readonly { readonly token: number; readonly position: number }[],
  idlePosition: (slot: number) => number,
): Promise<Float32Array[]> {
  const { slots, vocabularySize } = runner.shape;
  const bySlot = Array.from({ length: slots }, (_, slot) => {
    const row = rows[slot - firstSlot];
    return row === undefined ? null : { slot, computed: row.position, lastToken: row.token };
  });
  const batch = new DecodeBatchBuilder(runner.shape).build(bySlot, idlePosition);
  if (batch === null) return [];
  const logits = await runner.decode(batch);
  return rows.map((_, row) => {
    const start = (firstSlot + row - batch.firstSlot) * vocabularySize;
    return logits.slice(start, start + vocabularySize);
  });
}

/** Generates greedily in slot 0: at most `maxTokens` tokens, without the stop token that ends them. */
export async function continueGreedily(
  runner: ModelRunner,
  prompt: readonly number[],
  maxTokens: number,
  endTokenIds: ReadonlySet<number>,
): Promise<number[]> {
  const tokens: number[] = [];
  let token = argmax(await prefill(runner, 0, prompt));
  while (!endTokenIds.has(token) && tokens.length < maxTokens) {
    const [logits] = await decode(runner, 0, [{ token, position: prompt.length + tokens.length }], () => 0);
    tokens.push(token);
    token = argmax(logits!);
  }
  return tokens;
}
