import type { Arena, ArenaShare } from '../kernel/arena.ts';
import { type Company, SimdKernel } from '../kernel/simd-kernel.ts';
import type { RowEdits } from '../logits/row-edits.ts';
import type { TokenLogprobs } from '../logprobs.ts';
import type { TokenDraw } from '../token-draw.ts';
import { SamplerWorkspace } from '../workspace.ts';
import { JobList, MOST_JOBS } from './job-list.ts';
import { Drawer, type Draws } from './sampler-worker.ts';
import { SharedEdits } from './shared-edits.ts';
import { DrawJobs } from './shared-jobs.ts';

/** What a thread needs to draw tokens beside another one. */
export interface DrawShare {
  readonly rows: ArenaShare;
  /** 1 … */
  readonly thread: number;
  readonly vocabularySize: number;
  readonly list: SharedArrayBuffer;
  readonly jobs: SharedArrayBuffer;
  readonly edits: SharedArrayBuffer;
}

/** Threads beside the calling one. */
export interface Drawers extends Company {
  /** Starts a thread that calls `drawForever` and ends with the calling one, or before it by a fault: then `ended` is called. */
  start(share: DrawShare, ended: () => void): void;
}

/** Fewer draws are not worth waking the other threads. */
const LEAST = 2;

/**
 * The calling thread and others beside it, which draw the next tokens of one step's sequences together. What is drawn is
 * what each sampler would draw by itself; a draw that is not done when it is asked for, or has failed, is the sampler's.
 */
export class DrawTeam {
  readonly #kernel: SimdKernel;
  readonly #drawers: Drawers;
  readonly #workspace: SamplerWorkspace;
  readonly #draws: Draws = { list: new JobList(), jobs: new DrawJobs(), edits: new SharedEdits() };
  /** Where all rows lie. */
  #arena: Arena | null = null;
  #drawer: Drawer | null = null;
  #count = 0;

  /** @param kernel whose memory the rows come from; made for as many threads as there are */
  constructor(kernel: SimdKernel, vocabularySize: number, drawers: Drawers) {
    this.#kernel = kernel;
    this.#drawers = drawers;
    this.#workspace = new SamplerWorkspace(vocabularySize, kernel);
  }

  /** Begins a list of draws from rows of one memory. @returns false where nobody will draw ahead this time */
  begin(rows: Float32Array): boolean {
    this.end();
    if (this.#draws.list.busy) return false;
    const arena = this.#kernel.sharedArenaOf(rows);
    if (arena === null || (this.#arena !== null && this.#arena !== arena)) return false;
    this.#arena = arena;
    this.#draws.edits.begin();
    return true;
  }

  /**
   * Puts a draw on the list.
   * @param logits the sequence's row
   * @param edits what changes of it
   * @param alternatives for its logprobs; null = none are needed
   * @returns by what the draw is asked for; −1 where there is no room for it
   */
  add(
    draw: TokenDraw,
    logits: Float32Array,
    edits: RowEdits,
    step: number,
    alternatives: number | null,
  ): number {
    const { jobs, edits: all } = this.#draws;
    const start = this.#count === MOST_JOBS ? -1 : all.add(edits);
    if (start < 0) return -1;
    const asked = { row: logits.byteOffset, edits: start, edited: edits.count, step, alternatives };
    jobs.ask(this.#count, draw, asked);
    return this.#count++;
  }

  /** Returns when every draw is done or under way on another thread. Until `end` the rows must stay as they are. */
  run(): void {
    if (this.#count < LEAST || this.#arena === null) return;
    this.#drawer ??= this.#start(this.#arena);
    this.#draws.list.open(this.#count);
    this.#drawer.workOff();
  }

  /** No further draw is begun, and none is known any more. */
  end(): void {
    this.#draws.list.close();
    this.#count = 0;
  }

  /** What was drawn; null where the sampler has to draw by itself. */
  token(draw: number): number | null {
    return this.#draws.list.isDone(draw) ? this.#draws.jobs.token(draw) : null;
  }

  /** Of a draw with a token: Mirostat's bound after it. */
  bound(draw: number): number {
    return this.#draws.jobs.bound(draw);
  }

  /** Of a draw with a token that asked for them. */
  logprobs(draw: number): TokenLogprobs {
    return this.#draws.jobs.logprobs(draw);
  }

  #start({ share, rows }: Arena): Drawer {
    for (let thread = 1; thread < this.#drawers.threads; thread++) {
      const { vocabularySize } = this.#workspace;
      const { list, jobs, edits } = this.#draws;
      const shared = { list: list.memory, jobs: jobs.memory, edits: edits.memory };
      this.#drawers.start({ rows: share, thread, vocabularySize, ...shared }, () => list.forget(thread));
    }
    return new Drawer(this.#draws, this.#workspace, rows.buffer);
  }
}

/** Takes part in every round of another thread's team. */
export function drawForever(share: DrawShare, company: Pick<Company, 'ordinary'>): never {
  const { kernel, arena } = SimdKernel.beside(share.rows, share.thread, company);
  const workspace = new SamplerWorkspace(share.vocabularySize, kernel);
  const list = new JobList(share.list, share.thread);
  const draws = { list, jobs: new DrawJobs(share.jobs), edits: new SharedEdits(share.edits) };
  const drawer = new Drawer(draws, workspace, arena.rows.buffer);
  for (let round = 0; ; ) {
    round = list.awaitRound(round);
    drawer.workOff();
  }
}
