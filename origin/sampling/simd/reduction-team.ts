import type { RowAhead } from '../block-kernel.ts';
import { BLOCK_SIZE } from './block-loop.ts';
import type { BlockReductions } from './block-reductions.ts';
import { MOST_COLDNESSES, ReductionJobs } from './reduction-jobs.ts';
import { listAt, RowReducer } from './row-reducer.ts';
import type { Helpers } from './shared-work.ts';
import type { WasmMemory } from './webassembly.ts';

export interface TeamOptions {
  readonly module: object;
  readonly memory: WasmMemory;
  /** All of the memory, as numbers are copied fastest. */
  readonly bytes: ArrayBuffer;
  /** The calling thread's own instance of the module. */
  readonly reductions: BlockReductions;
  readonly helpers: Helpers;
  /** Where the results of a row go; bytes of the memory, as the row's own address. */
  readonly resultsOf: (row: number) => number;
}

/** The calling thread and others beside it, which reduce the rows of one step together. */
export class ReductionTeam {
  readonly jobs = new ReductionJobs();
  readonly #options: TeamOptions;
  readonly #reducer: RowReducer;
  /** Jobs of the open round by the addresses of their rows. */
  readonly #byRow = new Map<number, number>();

  constructor(options: TeamOptions) {
    const { module, memory, reductions, helpers } = options;
    this.#options = options;
    this.#reducer = new RowReducer(reductions, this.jobs, memory.buffer);
    const work = { module, memory, jobs: this.jobs.memory };
    for (let helper = 0; helper < helpers.count; helper++) helpers.start(work);
  }

  /** Reduces the rows, or none of them where a helper is late with the last ones, which must have been forgotten. */
  reduce(rows: readonly RowAhead[]): void {
    if (!this.jobs.open(rows, this.#options.resultsOf)) return;
    for (let index = 0; index < rows.length; index++) this.#byRow.set(rows[index]!.row.byteOffset, index);
    this.#reducer.workOff();
  }

  /** The rows are about to change. */
  forget(): void {
    this.jobs.close();
    this.#byRow.clear();
  }

  /** As the kernel's own; null where the row has not been reduced. */
  maxima(row: Float32Array, maxima: Float32Array): boolean | null {
    const job = this.#jobOf(row);
    if (job < 0) return null;
    this.#copy(job, 0, maxima);
    return this.jobs.isSound(job);
  }

  /** As the kernel's own; false where they were not made of this row, with these numbers. */
  sums(row: Float32Array, highest: number, coldness: number, sums: Float64Array): boolean {
    const job = this.#jobOf(row);
    if (job < 0 || this.jobs.highest(job) !== highest) return false;
    for (let k = 0; k < MOST_COLDNESSES; k++) {
      if (this.jobs.coldness(job, k) !== coldness) continue;
      this.#copy(job, k + 1, sums);
      return true;
    }
    return false;
  }

  /** The job of a row that has been reduced; −1 = it has not. */
  #jobOf(row: Float32Array): number {
    const index = this.#byRow.get(row.byteOffset) ?? -1;
    return this.jobs.isDone(index) ? index : -1;
  }

  #copy(job: number, list: number, to: Float32Array | Float64Array): void {
    const blocks = Math.floor(this.jobs.length(job) / BLOCK_SIZE);
    to.set(new Float32Array(this.#options.bytes, listAt(this.jobs.results(job), list, blocks), blocks));
  }
}
