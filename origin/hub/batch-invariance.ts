import type { ModelRunner } from '../model/model-runner.ts';
import { sameBits } from '../model/open/row-probe.ts';
import { decode, mostLikely, prefill } from './greedy.ts';

/** Whether a sequence's logits depend on the sequences that are computed beside it. */

export interface RowComparison {
  readonly rows: number;
  readonly steps: number;
  /** Every row of every step had the bits it has alone, or beside as few others as the runner wants. */
  readonly identical: boolean;
  /** Largest difference of a logit; 0 when identical. */
  readonly largestDifference: number;
}

/**
 * Gives every slot a prompt of another length, then decodes greedily, each step first row by row and then all rows at
 * once, which writes over what an idle row beside a lone one has left.
 * @param prompt Tokens, at least as many as the runner has slots
 */
export async function compareRows(
  runner: ModelRunner,
  prompt: readonly number[],
  steps: number,
): Promise<RowComparison> {
  const { slots } = runner.shape;
  const prompts = Array.from({ length: slots }, (_, slot) => prompt.slice(slot));
  let rows: { readonly token: number; readonly position: number }[] = [];
  for (const [slot, tokens] of prompts.entries()) {
    rows.push({ token: mostLikely(await prefill(runner, slot, tokens)), position: tokens.length });
  }
  let identical = true;
  let largestDifference = 0;
  for (let step = 0; step < steps; step += 1) {
    const nextPosition = (slot: number) => rows[slot]!.position;
    const alone: Float32Array[] = [];
    for (const [slot, row] of rows.entries()) {
      alone.push(...(await decode(runner, slot, [row], nextPosition)));
    }
    const together = await decode(runner, 0, rows, nextPosition);
    for (const [slot, logits] of together.entries()) {
      identical &&= sameBits(logits, alone[slot]!);
      largestDifference = Math.max(largestDifference, difference(logits, alone[slot]!));
    }
    rows = rows.map(({ position }, slot) => ({ token: mostLikely(alone[slot]!), position: position + 1 }));
  }
  return { rows: slots, steps, identical, largestDifference };
}

function difference(one: Float32Array, other: Float32Array): number {
  let largest = 0;
  for (let id = 0; id < one.length; id += 1) largest = Math.max(largest, Math.abs(one[id]! - other[id]!));
  return largest;
}
