import type { Arena, ViewMemory } from '../kernel/arena.ts';
import type { SimdKernel } from '../kernel/simd-kernel.ts';
import type { TokenLogprobs } from '../logprobs.ts';
import type { RowEdits } from '../row-edits.ts';
import type { TokenDraw } from '../token-draw.ts';
import { SamplerWorkspace } from '../workspace.ts';
import { JobList, MAX_JOBS } from './job-list.ts';
import { SamplerWorker, type WorkerShare } from './sampler-worker.ts';
import { SharedJobs } from './shared-jobs.ts';

/** Starts threads for sampler workers. */
export interface SamplerThreads {
  /** How many there are, the calling one included. */
  readonly threads: number;
  readonly viewMemory: ViewMemory;
  /**
   * Starts a thread that calls `runSamplerWorker`. It ends with the calling thread, or earlier by a fault.
   * @param ended called when the thread has ended or could not be started
   */
  start(share: WorkerShare, ended: () => void): void;
}

/** Waking a thread costs more than drawing one token. */
const MIN_JOBS = 2;

/** Drawing so many tokens from sparse rows without masks takes as long as waking a thread. */
const SPARSE_JOBS_PER_THREAD = 8;

/** How often the pool looks whether other threads have done their jobs: about a millisecond. */
const MOST_LOOKS = 10_000;

/**
 * Draws the next tokens of one step's sequences on several threads. The tokens are those that each sampler
 * would draw itself. If a draw is not done when it is asked for, or has failed, the caller draws with its
 * sampler.
 */
export class SamplerPool {
  readonly #kernel: SimdKernel;
  readonly #threads: SamplerThreads;
  readonly #workspace: SamplerWorkspace;
  readonly #sparseRows: number;
  readonly #list = new JobList();
  readonly #jobs: SharedJobs;
  /** The memory of all rows. */
  #arena: Arena | null = null;
  #worker: SamplerWorker | null = null;
  #count = 0;
  #sparseDraws = 0;
  /** Draws of this step whose rows are copied with a mask. */
  #maskedDraws = 0;

  /**
   * @param kernel made for as many threads as there are; the rows come from its memory
   * @param sparseRows rows that may be sparse
   */
  constructor(kernel: SimdKernel, vocabularySize: number, threads: SamplerThreads, sparseRows = 0) {
    this.#kernel = kernel;
    this.#threads = threads;
    this.#jobs = new SharedJobs(vocabularySize);
    this.#workspace = new SamplerWorkspace(vocabularySize, kernel);
    this.#sparseRows = sparseRows;
  }

  /**
   * Begins a list of draws from rows of one memory. Returns false if the pool cannot take part in this step.
   * @param sparseDraws how many of the draws will be from sparse rows
   */
  begin(rows: Float32Array, sparseDraws = 0): boolean {
    this.end();
    if (this.#list.busy) return false;
    const arena = this.#kernel.sharedArenaOf(rows);
    if (arena === null || (this.#arena !== null && this.#arena !== arena)) return false;
    this.#arena = arena;
    this.#sparseDraws = sparseDraws;
    this.#maskedDraws = 0;
    this.#jobs.clear();
    return true;
  }

  /**
   * Adds a draw to the list.
   * @param logits the sequence's row
   * @param edits what the logits processors change in it; the logits that its mask allows must be here
   * @param topLogprobs how many of the most likely tokens to return; null = no logprobs
   * @returns the draw's index; −1 if there is no room for it
   */
  add(
    draw: TokenDraw,
    logits: Float32Array,
    edits: RowEdits,
    step: number,
    topLogprobs: number | null,
  ): number {
    const { parameters, identity, bound } = draw;
    const job = { parameters, identity, bound, row: logits.byteOffset, step, topLogprobs };
    const hasRoom = this.#count < MAX_JOBS && this.#jobs.write(this.#count, job, edits);
    if (!hasRoom) return -1;
    this.#maskedDraws += Number(edits.changed.mask !== null);
    return this.#count++;
  }

  /** Returns when every draw is done or on another thread. The rows must not change until `end`. */
  run(): void {
    const least = this.#sparseDraws > 0 ? 1 : MIN_JOBS;
    if (this.#count < least || this.#arena === null) return;
    this.#worker ??= this.#start(this.#arena);
    this.#list.open(this.#count, this.#wakes);
    this.#worker.workOff();
  }

  /** How many threads are worth waking. */
  get #wakes(): number {
    const sparse = Math.max(0, Math.min(this.#sparseDraws, this.#count) - this.#maskedDraws);
    return Math.ceil(this.#count - sparse + sparse / SPARSE_JOBS_PER_THREAD) - 1;
  }

  /** Waits until no draw is in progress. Returns false if a thread takes too long. */
  settle(): boolean {
    for (let look = 0; look < MOST_LOOKS; look++) if (!this.#list.busy) return true;
    return false;
  }

  /** Repeats the draws that have no token. No draw may be in progress. */
  retry(): void {
    this.#list.close();
    this.run();
  }

  /** Ends the step: no further draw begins, and results are forgotten. */
  end(): void {
    this.#list.close();
    this.#count = 0;
  }

  /** The drawn token; null if the caller has to draw itself. */
  token(draw: number): number | null {
    return this.#list.isDone(draw) ? this.#jobs.token(draw) : null;
  }

  /** Mirostat's bound after a draw that has a token. */
  bound(draw: number): number {
    return this.#jobs.bound(draw);
  }

  /** The logprobs of a draw that has a token and asked for them. */
  logprobs(draw: number): TokenLogprobs {
    return this.#jobs.logprobs(draw);
  }

  #start({ share, rows }: Arena): SamplerWorker {
    for (let thread = 1; thread < this.#threads.threads; thread++) {
      const { vocabularySize } = this.#workspace;
      const sparseRows = this.#sparseRows;
      const [list, jobs] = [this.#list.memory, this.#jobs.memory];
      const ended = () => this.#list.removeThread(thread);
      this.#threads.start({ rows: share, thread, vocabularySize, sparseRows, list, jobs }, ended);
    }
    return new SamplerWorker(this.#list, this.#jobs, this.#workspace, rows, this.#sparseRows);
  }
}
