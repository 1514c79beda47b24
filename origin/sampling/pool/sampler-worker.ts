import { tokenLogprob } from '../logprobs.ts';
import { TokenDraw } from '../token-draw.ts';
import type { SamplerWorkspace } from '../workspace.ts';
import type { JobList } from './job-list.ts';
import type { SharedEdits } from './shared-edits.ts';
import type { Asked, DrawJobs } from './shared-jobs.ts';

/** The draws of one step, as several threads see them. */
export interface Draws {
  readonly list: JobList;
  readonly jobs: DrawJobs;
  readonly edits: SharedEdits;
}

/** Draws what a list asks for, on whichever thread it is. */
export class Drawer {
  readonly #list: JobList;
  readonly #jobs: DrawJobs;
  readonly #edits: SharedEdits;
  readonly #workspace: SamplerWorkspace;
  /** All of the rows' memory. */
  readonly #bytes: ArrayBuffer;
  /** The last draw of each row, and views of rows, by address: a sequence keeps its row for many steps. */
  readonly #draws = new Map<number, TokenDraw>();
  readonly #rows = new Map<number, Float32Array>();

  /** @param workspace of a vocabulary as large as the rows, with a kernel that reads them in place */
  constructor({ list, jobs, edits }: Draws, workspace: SamplerWorkspace, bytes: ArrayBuffer) {
    this.#list = list;
    this.#jobs = jobs;
    this.#edits = edits;
    this.#workspace = workspace;
    this.#bytes = bytes;
  }

  /** Returns when no job is left to be taken; others may still be at work on theirs. */
  workOff(): void {
    this.#list.workOff(this.#draw);
  }

  readonly #draw = (index: number): void => {
    const jobs = this.#jobs;
    try {
      const asked = jobs.asked(index);
      const { step, alternatives } = asked;
      const logits = this.#rowAt(asked.row);
      const draw = this.#drawOf(index, asked.row);
      draw.bound = jobs.bound(index);
      const row = this.#edited(logits, asked);
      const token = draw.from(row, step);
      const workspace = this.#workspace;
      const scored =
        alternatives === null ? null : tokenLogprob(logits, token, alternatives, workspace, row === logits);
      jobs.answer(index, token, draw.bound, scored);
    } catch {
      jobs.fail(index);
    }
  };

  #edited(logits: Float32Array, { edits, edited }: Asked): Float32Array {
    if (edited === 0) return logits;
    const { scores } = this.#workspace;
    scores.set(logits);
    this.#edits.applyTo(scores, edits, edited);
    return scores;
  }

  #drawOf(index: number, address: number): TokenDraw {
    const last = this.#draws.get(address);
    if (last !== undefined && this.#jobs.isOf(index, last)) return last;
    const draw = new TokenDraw(this.#jobs.parameters(index), this.#jobs.identity(index), this.#workspace);
    this.#draws.set(address, draw);
    return draw;
  }

  #rowAt(address: number): Float32Array {
    const known = this.#rows.get(address);
    if (known !== undefined) return known;
    const row = new Float32Array(this.#bytes, address, this.#workspace.vocabularySize);
    this.#rows.set(address, row);
    return row;
  }
}
