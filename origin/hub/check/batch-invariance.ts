import type { ModelRunner } from '../../model/model-runner.ts';
import { sameBits } from '../../model/open/row-probe.ts';
import { argmax } from '../../sampling/argmax.ts';
import { decode, prefill } from './greedy.ts';

export interface BatchInvariance {
  /** Rows of the full batch. */
  readonly rows: number;
  readonly steps: number;
  /** True if every row of every full batch has the same bits as in the smallest batch. */
  readonly identical: boolean;
  /** Largest difference of a logit; 0 if identical. */
  readonly maxDifference: number;
}

/**
 * Compares the logits of each row in a full batch with those in the smallest batch: the row and, if the
 * runner needs them, idle rows. Each slot gets a prompt of another length. Each greedy step runs row by row
 * first and then as a full batch, which overwrites what idle rows wrote.
 * @param prompt At least as many tokens as the runner has slots
 */
export async function measureBatchInvariance(
  runner: ModelRunner,
  prompt: readonly number[],
  steps: number,
): Promise<BatchInvariance> {
  const { slots } = runner.shape;
  let rows: { readonly token: number; readonly position: number }[] = [];
  for (let slot = 0; slot < slots; slot += 1) {
    const tokens = prompt.slice(slot);
    rows.push({ token: argmax(await prefill(runner, slot, tokens)), position: tokens.length });
  }
  let identical = true;
  let maxDifference = 0;
  for (let step = 0; step < steps; step += 1) {
    const idlePosition = (slot: number) => rows[slot]!.position;
    const single: Float32Array[] = [];
    for (const [slot, row] of rows.entries())
      single.push(...(await decode(runner, slot, [row], idlePosition)));
    const batched = await decode(runner, 0, rows, idlePosition);
    for (const [slot, logits] of batched.entries()) {
      identical &&= sameBits(logits, single[slot]!);
      maxDifference = Math.max(maxDifference, difference(logits, single[slot]!));
    }
    rows = rows.map(({ position }, slot) => ({ token: argmax(single[slot]!), position: position + 1 }));
  }
  return { rows: slots, steps, identical, maxDifference };
}

function difference(left: Float32Array, right: Float32Array): number {
  let largest = 0;
  for (let id = 0; id < left.length; id += 1) largest = Math.max(largest, Math.abs(left[id]! - right[id]!));
  return largest;
}
