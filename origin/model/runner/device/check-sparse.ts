import type { SparseRows } from '../../model-runner.ts';
import { AbsentLogits, BLOCK_SIZE, type SparseRow } from '../../sparse-logits.ts';

/** Largest relative error of a block's sum: float32 sums of 128 terms, each by the card's own exponential. */
const TOLERANCE = 1e-4;
/** Sums below this are rounded to zero by some cards. */
const SMALLEST = 1e-30;

type Coldness = readonly (number | null)[];

/**
 * Compares sparse rows of a device with whole ones. Returns what differs, or null.
 * @param run computes the same batch each time, and returns its logits
 */
export function sparseFault(sparse: SparseRows, run: (coldness?: Coldness) => Float32Array): string | null {
  const { logits } = sparse;
  const { vocabularySize } = logits;
  const expected = run().slice();
  const last = expected.length / vocabularySize - 1;
  logits.memory.subarray(0, expected.length).fill(Number.NaN);
  // The last row is to be whole, unless it is the only one.
  const coldness = Array.from({ length: last + 1 }, (_, row) =>
    row > 0 && row === last ? null : 1 + row / 4,
  );
  const result = run(coldness);
  for (const row of new Set([0, Math.min(1, last), last >> 1, last])) {
    const ofRow = (all: Float32Array) => all.subarray(row * vocabularySize, (row + 1) * vocabularySize);
    const fault = rowFault(sparse, ofRow(result), ofRow(expected));
    if (fault !== null) return `row ${row} of ${last + 1}: ${fault}`;
  }
  return null;
}

function rowFault(sparse: SparseRows, brought: Float32Array, right: Float32Array): string | null {
  const sparseRow = sparse.logits.of(brought);
  if (sparseRow !== null) {
    const fault = statisticsFault(sparseRow, brought, right);
    if (fault !== null) return fault;
    const block = sparseRow.present.length >> 1;
    const start = block * BLOCK_SIZE;
    if (asksFor(sparseRow, block) && !sparse.fetchWanted()) return 'no block was brought';
    if (brought[start] !== right[start]) return `block ${block} was not brought`;
  }
  sparse.complete(brought);
  return right.some((logit, id) => brought[id] !== logit) ? 'other logits than those of a whole row' : null;
}

/** Returns false if the block is here already. */
function asksFor(sparseRow: SparseRow, block: number): boolean {
  try {
    sparseRow.require(block);
    return false;
  } catch (error) {
    if (error instanceof AbsentLogits) return true;
    throw error;
  }
}

function statisticsFault(sparseRow: SparseRow, brought: Float32Array, right: Float32Array): string | null {
  const { maxima, sums, coldSums } = sparseRow.statistics;
  const highest = right.reduce((most, logit) => Math.max(most, logit), Number.NEGATIVE_INFINITY);
  for (const [block, most] of maxima.entries()) {
    const start = block * BLOCK_SIZE;
    const part = right.subarray(start, start + BLOCK_SIZE);
    if (most !== Math.max(...part)) return `block ${block} has another maximum`;
    if ((brought[start] === right[start]) !== (most === highest))
      return `block ${block} is here or not by mistake`;
    const at = [
      { given: sums[block]!, coldness: 1 },
      { given: coldSums[block]!, coldness: sparseRow.coldness },
    ];
    for (const { given, coldness } of at) {
      const sum = part.reduce((total, logit) => total + Math.exp((logit - highest) * coldness), 0);
      if (Math.abs(given - sum) > TOLERANCE * sum + SMALLEST) return `block ${block} has another sum`;
    }
  }
  return null;
}
