import { BLOCK_SIZE } from './block-loop.ts';
import type { BlockReductions } from './block-reductions.ts';
import { MOST_COLDNESSES, type ReductionJobs } from './reduction-jobs.ts';

/** What one job leaves per block: its maximum and its sums. */
export const NUMBERS_AHEAD = 1 + MOST_COLDNESSES;

/** Where a row's maxima (list 0) or its sums at a coldness (list 1 …) begin among its results; in bytes. */
export const listAt = (results: number, list: number, blocks: number): number => results + 4 * blocks * list;

/** Reduces the rows of a list of jobs, on whichever thread it is. */
export class RowReducer {
  readonly #reductions: BlockReductions;
  readonly #jobs: ReductionJobs;
  /** All of the rows' memory. */
  readonly #numbers: Float32Array;

  constructor(reductions: BlockReductions, jobs: ReductionJobs, memory: ArrayBufferLike) {
    this.#reductions = reductions;
    this.#jobs = jobs;
    this.#numbers = new Float32Array(memory, 0, Math.floor(memory.byteLength / 4));
  }

  /** Returns when no job is left to be taken; others may still be at work on theirs. */
  workOff(): void {
    this.#jobs.workOff(this.#reduce);
  }

  readonly #reduce = (index: number): void => {
    const jobs = this.#jobs;
    const row = jobs.row(index);
    const results = jobs.results(index);
    const blocks = Math.floor(jobs.length(index) / BLOCK_SIZE);
    const sound = this.#reductions.maxima(row, blocks, results) === 1;
    const largest = sound ? this.#highest(index, blocks) : Number.NaN;
    // A row without a largest logit, or with an infinite one, is looked at by whoever asks for it.
    const highest = Number.isFinite(largest) ? largest : Number.NaN;
    jobs.record(index, sound, highest);
    if (Number.isNaN(highest)) return;
    for (let k = 0; k < MOST_COLDNESSES; k++) {
      const coldness = jobs.coldness(index, k);
      if (Number.isNaN(coldness)) return;
      this.#reductions.sums(row, blocks, listAt(results, k + 1, blocks), highest, coldness);
    }
  };

  /** The largest of the blocks' maxima and of the logits past the last block. */
  #highest(index: number, blocks: number): number {
    const numbers = this.#numbers;
    const maxima = this.#jobs.results(index) / 4;
    let highest = Number.NEGATIVE_INFINITY;
    for (let at = maxima; at < maxima + blocks; at++) if (numbers[at]! > highest) highest = numbers[at]!;
    const row = this.#jobs.row(index) / 4;
    const end = row + this.#jobs.length(index);
    for (let at = row + blocks * BLOCK_SIZE; at < end; at++)
      if (numbers[at]! > highest) highest = numbers[at]!;
    return highest;
  }
}
