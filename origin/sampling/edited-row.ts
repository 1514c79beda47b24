import { BLOCK_SIZE, blocksOf, type SparseRow } from '../model/sparse-logits.ts';
import { exponential } from './exponential.ts';
import { IdSet } from './id-set.ts';

/** Single logits of a row that are changed. */
export interface Edits {
  readonly ids: Int32Array;
  readonly values: Float32Array;
}

/** Nats that the largest logit may fall: float32 sums of smaller weights lose their precision. */
const MOST_NATS = 50;

/** Sums at one coldness: those of the row without edits, and where those with edits go. */
interface WeighedSums {
  readonly from: Float32Array;
  readonly to: Float32Array;
  readonly coldness: number;
}

/** A sparse row with edits. Their blocks are here, summed again. One object serves all rows of a thread. */
export class EditedRow {
  readonly #maxima: Float32Array;
  readonly #sums: Float32Array;
  readonly #coldSums: Float32Array;
  readonly #editedBlocks: IdSet;

  constructor(vocabularySize: number) {
    const blocks = blocksOf(vocabularySize);
    this.#maxima = new Float32Array(blocks);
    this.#sums = new Float32Array(blocks);
    this.#coldSums = new Float32Array(blocks);
    this.#editedBlocks = new IdSet(blocks);
  }

  /**
   * Writes the blocks that are here with the edits to `target`. Returns what is known of that row, until the
   * next call.
   * @throws AbsentLogits
   */
  write(row: Float32Array, sparse: SparseRow, { ids, values }: Edits, target: Float32Array): SparseRow {
    for (const block of sparse.present.keys()) if (sparse.isHere(block)) copyBlock(row, target, block);
    this.#editedBlocks.clear();
    for (const [index, id] of ids.entries()) {
      const block = Math.floor(id / BLOCK_SIZE);
      sparse.require(block);
      target[id] = values[index]!;
      this.#editedBlocks.add(block);
    }
    return this.#summarize(sparse, target);
  }

  #summarize(sparse: SparseRow, target: Float32Array): SparseRow {
    const { statistics, coldness } = sparse;
    let [before, highest] = [Number.NEGATIVE_INFINITY, Number.NEGATIVE_INFINITY];
    for (let block = 0; block < this.#maxima.length; block++) {
      const unedited = statistics.maxima[block]!;
      const maximum = this.#editedBlocks.has(block) ? maximumOf(target, block) : unedited;
      this.#maxima[block] = maximum;
      before = Math.max(before, unedited);
      highest = Math.max(highest, maximum);
    }
    const fallen = (before - highest) * Math.max(1, coldness);
    if (!(highest < Number.POSITIVE_INFINITY && fallen < MOST_NATS)) sparse.giveUp();
    this.#weigh(target, highest, before, { from: statistics.sums, to: this.#sums, coldness: 1 });
    this.#weigh(target, highest, before, { from: statistics.coldSums, to: this.#coldSums, coldness });
    return sparse.with({ maxima: this.#maxima, sums: this.#sums, coldSums: this.#coldSums });
  }

  #weigh(target: Float32Array, highest: number, before: number, { from, to, coldness }: WeighedSums): void {
    const scale = Math.exp((before - highest) * coldness);
    for (let block = 0; block < to.length; block++) {
      to[block] = this.#editedBlocks.has(block)
        ? sumOf(target, block, highest, coldness)
        : scale * from[block]!;
    }
  }
}

function copyBlock(row: Float32Array, target: Float32Array, block: number): void {
  const start = block * BLOCK_SIZE;
  target.set(row.subarray(start, start + BLOCK_SIZE), start);
}

function maximumOf(row: Float32Array, block: number): number {
  const end = Math.min((block + 1) * BLOCK_SIZE, row.length);
  let most = Number.NEGATIVE_INFINITY;
  for (let id = block * BLOCK_SIZE; id < end; id++) most = Math.max(most, row[id]!);
  return most;
}

function sumOf(row: Float32Array, block: number, highest: number, coldness: number): number {
  const end = Math.min((block + 1) * BLOCK_SIZE, row.length);
  let sum = 0;
  for (let id = block * BLOCK_SIZE; id < end; id++) sum += exponential((row[id]! - highest) * coldness);
  return sum;
}
