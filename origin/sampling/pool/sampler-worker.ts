import { SparseLogits, type SparseRow } from '../../model/sparse-logits.ts';
import { EditedRow } from '../edited-row.ts';
import type { Arena, ArenaShare, ViewMemory } from '../kernel/arena.ts';
import { SimdKernel } from '../kernel/simd-kernel.ts';
import { tokenLogprob } from '../logprobs.ts';
import { copyMasked } from '../masked-copy.ts';
import { TokenDraw } from '../token-draw.ts';
import { SamplerWorkspace } from '../workspace.ts';
import { JobList } from './job-list.ts';
import { SharedJobs } from './shared-jobs.ts';

/** The data that a sampler worker's thread starts with. */
export interface WorkerShare {
  readonly rows: ArenaShare;
  /** 1 …; 0 is the thread that starts the workers. */
  readonly thread: number;
  readonly vocabularySize: number;
  /** Rows that may be sparse; 0 = none. */
  readonly sparseRows: number;
  readonly list: SharedArrayBuffer;
  readonly jobs: SharedArrayBuffer;
}

/** Draws the tokens of a job list, on any thread. */
export class SamplerWorker {
  readonly #list: JobList;
  readonly #jobs: SharedJobs;
  readonly #workspace: SamplerWorkspace;
  readonly #rows: Arena['rows'];
  readonly #sparse: SparseLogits;
  readonly #edited: EditedRow;

  /**
   * @param workspace with a kernel that reads `rows` in place
   * @param sparseRows rows that may be sparse
   */
  constructor(
    list: JobList,
    jobs: SharedJobs,
    workspace: SamplerWorkspace,
    rows: Arena['rows'],
    sparseRows: number,
  ) {
    this.#list = list;
    this.#jobs = jobs;
    this.#workspace = workspace;
    this.#rows = rows;
    this.#sparse = new SparseLogits(rows, sparseRows, workspace.vocabularySize);
    this.#edited = new EditedRow(workspace.vocabularySize);
  }

  /** Returns when all jobs are taken. */
  workOff(): void {
    this.#list.workOff(this.#draw);
  }

  readonly #draw = (index: number): void => {
    const jobs = this.#jobs;
    const workspace = this.#workspace;
    // The job was done before the device brought what others lacked.
    if (jobs.token(index) !== null) return;
    try {
      const { parameters, identity, bound, row: address, step, topLogprobs } = jobs.read(index);
      const draw = new TokenDraw(parameters, identity, workspace);
      draw.bound = bound;
      const logits = new Float32Array(this.#rows.buffer, address, workspace.vocabularySize);
      const sparse = this.#sparse.of(logits);
      const token = this.#drawFrom(draw, step, logits, sparse, index);
      const isCurrent = workspace.row.logits === logits;
      const logprobs =
        topLogprobs === null ? null : tokenLogprob(logits, token, topLogprobs, workspace, isCurrent, sparse);
      jobs.writeResult(index, token, draw.bound, logprobs);
    } catch {
      // Logits are absent, or the sampler of the sequence throws on the engine thread, too, where the
      // sequence can fail.
      jobs.writeFailure(index);
    }
  };

  #drawFrom(
    draw: TokenDraw,
    step: number,
    logits: Float32Array,
    sparse: SparseRow | null,
    job: number,
  ): number {
    const { edited } = this.#workspace;
    const edits = this.#jobs.editsOf(job);
    const mask = this.#jobs.maskOf(job);
    // All logits that the mask allows are here.
    if (mask !== null) copyMasked(edited, logits, mask);
    else if (edits.ids.length === 0) return draw.from(logits, step, sparse);
    else if (sparse !== null) {
      return draw.from(edited, step, this.#edited.write(logits, sparse, edits, edited));
    } else edited.set(logits);
    for (const [index, id] of edits.ids.entries()) edited[id] = edits.values[index]!;
    return draw.from(edited, step);
  }
}

/** The loop of a worker's thread: takes part in every round of the pool's job list. */
export function runSamplerWorker(share: WorkerShare, viewMemory: ViewMemory): never {
  const { kernel, arena } = SimdKernel.attach(share.rows, share.thread, viewMemory);
  const workspace = new SamplerWorkspace(share.vocabularySize, kernel);
  const list = new JobList(share.list, share.thread);
  const worker = new SamplerWorker(
    list,
    new SharedJobs(share.vocabularySize, share.jobs),
    workspace,
    arena.rows,
    share.sparseRows,
  );
  for (let round = 0; ; ) {
    round = list.awaitRound(round);
    worker.workOff();
  }
}
