import { MAX_TOP_LOGPROBS } from '../../../shared/logprob.ts';
import type { TokenLogprobs } from '../logprobs.ts';
import type { DrawIdentity } from '../rng.ts';
import { DRAW_PARAMETERS, type DrawParameters, type TokenDraw } from '../token-draw.ts';
import { MOST_JOBS } from './job-list.ts';

/** Per job, as float64: what is asked … */
const [ROW, EDITS, EDITED, STEP, BOUND, ALTERNATIVES, SEED, PROMPT, CHOICE, PARAMETERS] = [
  0, 1, 2, 3, 4, 5, 6, 7, 8, 9,
] as const;
/** … and what was found. */
const TOKEN = PARAMETERS + DRAW_PARAMETERS.length;
const LOGPROB = TOKEN + 1;
const LISTED = TOKEN + 2;
const LIST = TOKEN + 3;
const NUMBERS = LIST + 2 * MAX_TOP_LOGPROBS;

/** In the place of a token: whoever needs it has to draw it, and hears what is wrong with the row. */
const NONE = -1;

/** What a token is drawn from, and what is told of it. */
export interface Asked {
  /** Where the model's row begins, in bytes of the rows' memory. */
  readonly row: number;
  /** Where the changes of it begin, among all of the step, and how many there are. */
  readonly edits: number;
  readonly edited: number;
  readonly step: number;
  /** How many alternatives are told; null = no logprobs. */
  readonly alternatives: number | null;
}

/** What there is to draw, and what was drawn, as numbers in shared memory. */
export class DrawJobs {
  readonly memory: SharedArrayBuffer;
  readonly #numbers: Float64Array;

  /** @param memory another thread's; one of its own unless given */
  constructor(memory?: SharedArrayBuffer) {
    this.memory = memory ?? new SharedArrayBuffer(8 * NUMBERS * MOST_JOBS);
    this.#numbers = new Float64Array(this.memory);
  }

  ask(index: number, { parameters, identity, bound }: TokenDraw, asked: Asked): void {
    const numbers = this.#numbers;
    const at = index * NUMBERS;
    numbers[at + ROW] = asked.row;
    numbers[at + EDITS] = asked.edits;
    numbers[at + EDITED] = asked.edited;
    numbers[at + STEP] = asked.step;
    numbers[at + BOUND] = bound;
    numbers[at + ALTERNATIVES] = asked.alternatives ?? NONE;
    numbers[at + SEED] = identity.seed;
    numbers[at + PROMPT] = identity.prompt;
    numbers[at + CHOICE] = identity.choice;
    for (let i = 0; i < DRAW_PARAMETERS.length; i++) {
      numbers[at + PARAMETERS + i] = parameters[DRAW_PARAMETERS[i]!];
    }
  }

  asked(index: number): Asked {
    const at = (field: number) => this.#at(index, field);
    const alternatives = at(ALTERNATIVES);
    return {
      row: at(ROW),
      edits: at(EDITS),
      edited: at(EDITED),
      step: at(STEP),
      alternatives: alternatives === NONE ? null : alternatives,
    };
  }

  /** Mirostat's: before the draw as it was asked with, after it as it has been corrected. */
  bound(index: number): number {
    return this.#at(index, BOUND);
  }

  /** Whether a draw is the one that is asked for, but for its bound. */
  isOf(index: number, { parameters, identity }: TokenDraw): boolean {
    const numbers = this.#numbers;
    const at = index * NUMBERS;
    for (let i = 0; i < DRAW_PARAMETERS.length; i++) {
      if (numbers[at + PARAMETERS + i] !== parameters[DRAW_PARAMETERS[i]!]) return false;
    }
    const { seed, prompt, choice } = identity;
    return numbers[at + SEED] === seed && numbers[at + PROMPT] === prompt && numbers[at + CHOICE] === choice;
  }

  identity(index: number): DrawIdentity {
    const at = (field: number) => this.#at(index, field);
    return { seed: at(SEED), prompt: at(PROMPT), choice: at(CHOICE) };
  }

  parameters(index: number): DrawParameters {
    const entries = DRAW_PARAMETERS.map((name, i) => [name, this.#at(index, PARAMETERS + i)]);
    // They were parameters when they were asked for.
    return Object.fromEntries(entries) as DrawParameters;
  }

  answer(index: number, token: number, bound: number, logprobs: TokenLogprobs | null): void {
    const numbers = this.#numbers;
    const at = index * NUMBERS;
    numbers[at + TOKEN] = token;
    numbers[at + BOUND] = bound;
    if (logprobs === null) return;
    const { logprob, top } = logprobs;
    numbers[at + LOGPROB] = logprob;
    numbers[at + LISTED] = top.length;
    for (const [rank, [id, other]] of top.entries()) {
      numbers[at + LIST + 2 * rank] = id;
      numbers[at + LIST + 2 * rank + 1] = other;
    }
  }

  fail(index: number): void {
    this.#numbers[index * NUMBERS + TOKEN] = NONE;
  }

  /** What was drawn; null where the draw failed. */
  token(index: number): number | null {
    const token = this.#at(index, TOKEN);
    return token === NONE ? null : token;
  }

  logprobs(index: number): TokenLogprobs {
    const top: [number, number][] = [];
    for (let rank = 0; rank < this.#at(index, LISTED); rank++) {
      top.push([this.#at(index, LIST + 2 * rank), this.#at(index, LIST + 2 * rank + 1)]);
    }
    return { logprob: this.#at(index, LOGPROB), top };
  }

  #at(index: number, field: number): number {
    return this.#numbers[index * NUMBERS + field]!;
  }
}
