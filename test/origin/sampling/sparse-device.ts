import type { SparseRows } from '../../../origin/model/model-runner.ts';
import { BLOCK_SIZE, SparseLogits } from '../../../origin/model/sparse-logits.ts';

/** A device that keeps whole rows. Main memory holds NaN where it has brought nothing. */
export class SparseDevice implements SparseRows {
  readonly logits: SparseLogits;
  readonly #rows: Float32Array[] = [];

  constructor(memory: Float32Array<ArrayBuffer>, rows: number, vocabularySize: number) {
    this.logits = new SparseLogits(memory, rows, vocabularySize);
  }

  rowAt(index: number): Float32Array {
    const { memory, vocabularySize } = this.logits;
    return memory.subarray(index * vocabularySize, (index + 1) * vocabularySize);
  }

  /** Sums are plain ones in float64, rounded. */
  keep(index: number, row: Float32Array, coldness: number): void {
    this.#rows[index] = row;
    this.logits.begin(index, coldness);
    this.rowAt(index).fill(Number.NaN);
    const { statistics, present } = this.logits.of(this.rowAt(index))!;
    const partOf = (block: number) => row.subarray(block * BLOCK_SIZE, (block + 1) * BLOCK_SIZE);
    for (let block = 0; block < present.length; block++) {
      const most = Math.max(...partOf(block));
      statistics.maxima[block] = Number.isNaN(most) ? Number.POSITIVE_INFINITY : most;
    }
    const highest = Math.max(...statistics.maxima);
    for (let block = 0; block < present.length; block++) {
      const part = partOf(block);
      const sumAt = (cold: number) =>
        part.reduce((sum, logit) => sum + Math.exp((logit - highest) * cold), 0);
      statistics.sums[block] = sumAt(1);
      statistics.coldSums[block] = sumAt(Math.fround(coldness));
      present[block] = Number(statistics.maxima[block] === highest);
      if (present[block]) this.rowAt(index).set(part, block * BLOCK_SIZE);
    }
  }

  fetchWanted(): boolean {
    return this.#bring(this.logits.listWanted()) > 0;
  }

  complete(row: Float32Array): void {
    const index = this.logits.indexOf(row);
    if (index >= 0) this.#bring(this.logits.listRest(index));
  }

  /** Brings the first `count` blocks of the list. */
  #bring(count: number): number {
    for (const entry of this.logits.list.subarray(0, count)) {
      const start = (entry & 0xffff) * BLOCK_SIZE;
      const row = this.#rows[entry >> 16]!;
      this.rowAt(entry >> 16).set(row.subarray(start, start + BLOCK_SIZE), start);
    }
    return count;
  }
}
