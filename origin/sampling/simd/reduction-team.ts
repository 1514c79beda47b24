import type { RowAhead } from '../block-kernel.ts';
import type { BlockReductions } from './block-reductions.ts';
import { ReductionJobs } from './reduction-jobs.ts';
import { RowReducer } from './row-reducer.ts';
import type { Helpers } from './shared-work.ts';
import type { WasmMemory } from './webassembly.ts';

export interface TeamOptions {
  readonly module: object;
  readonly memory: WasmMemory;
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

  /** The job of a row that has been reduced; −1 = it has not. */
  jobOf(row: number): number {
    const index = this.#byRow.get(row) ?? -1;
    return this.jobs.isDone(index) ? index : -1;
  }
}
