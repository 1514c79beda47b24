import { MAX_TOP_LOGPROBS } from '@continuo/shared/logprob.ts';
import type { Edits } from '../edited-row.ts';
import type { TokenLogprobs } from '../logprobs.ts';
import { wordsOf } from '../masked-copy.ts';
import { DRAW_PARAMETERS, type DrawParameters } from '../parameters.ts';
import type { DrawIdentity } from '../rng.ts';
import type { RowEdits } from '../row-edits.ts';
import { MAX_JOBS } from './job-list.ts';

/** All rows of a step together have at most this many edits. */
const MAX_EDITS = 65_536;

/** Layout of a job, in float64: the request, then the result. */
const [ROW, FIRST_EDIT, EDIT_COUNT, MASKED, STEP, BOUND, TOP_LOGPROBS, SEED, PROMPT, CHOICE, PARAMETERS] = [
  0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10,
] as const;
const TOKEN = PARAMETERS + DRAW_PARAMETERS.length;
const LOGPROB = TOKEN + 1;
const TOP_COUNT = TOKEN + 2;
const TOP = TOKEN + 3;
const SIZE = TOP + 2 * MAX_TOP_LOGPROBS;

/** In place of a token, if the draw failed; in place of `topLogprobs`, if no logprobs are asked for. */
const NONE = -1;

/** A token to draw. */
interface DrawJob {
  readonly parameters: DrawParameters;
  readonly identity: DrawIdentity;
  /** Mirostat's, before the draw. */
  readonly bound: number;
  /** Where the model's row begins, in bytes of the rows' memory. */
  readonly row: number;
  readonly step: number;
  /** How many of the most likely tokens to return; null = no logprobs. */
  readonly topLogprobs: number | null;
}

/** The jobs of one step and their results, in memory that threads share. */
export class SharedJobs {
  readonly memory: SharedArrayBuffer;
  readonly #numbers: Float64Array;
  /** The same memory. A seed has 64 bits. */
  readonly #integers: BigInt64Array;
  readonly #editIds: Int32Array;
  readonly #editValues: Float32Array;
  /** A bit set per job. Memory that no mask has touched is not used. */
  readonly #masks: Uint32Array;
  readonly #maskLength: number;
  #usedEdits = 0;

  /** @param memory another thread's; new by default */
  constructor(vocabularySize: number, memory?: SharedArrayBuffer) {
    const numbers = SIZE * MAX_JOBS;
    const masksAt = 8 * (numbers + MAX_EDITS);
    this.#maskLength = wordsOf(vocabularySize);
    this.memory = memory ?? new SharedArrayBuffer(masksAt + 4 * this.#maskLength * MAX_JOBS);
    this.#masks = new Uint32Array(this.memory, masksAt);
    this.#numbers = new Float64Array(this.memory, 0, numbers);
    this.#integers = new BigInt64Array(this.memory, 0, numbers);
    this.#editIds = new Int32Array(this.memory, 8 * numbers, MAX_EDITS);
    this.#editValues = new Float32Array(this.memory, 8 * numbers + 4 * MAX_EDITS, MAX_EDITS);
  }

  /** Forgets the edits of the last step. */
  clear(): void {
    this.#usedEdits = 0;
  }

  /** Writes a job; returns false if there is no room for its edits. */
  write(index: number, job: DrawJob, edits: RowEdits): boolean {
    const { ids, count, mask } = edits.changed;
    const first = this.#usedEdits;
    if (first + count > MAX_EDITS) return false;
    for (let i = 0; i < count; i++) {
      this.#editIds[first + i] = ids[i]!;
      this.#editValues[first + i] = edits.get(ids[i]!);
    }
    this.#usedEdits += count;
    const { parameters, identity } = job;
    const numbers = this.#of(index);
    numbers[ROW] = job.row;
    numbers[FIRST_EDIT] = first;
    numbers[EDIT_COUNT] = count;
    numbers[MASKED] = Number(mask !== null);
    if (mask !== null) this.#masks.set(mask, index * this.#maskLength);
    numbers[STEP] = job.step;
    numbers[BOUND] = job.bound;
    numbers[TOP_LOGPROBS] = job.topLogprobs ?? NONE;
    numbers[TOKEN] = NONE;
    this.#integers[index * SIZE + SEED] = BigInt(identity.seed);
    numbers[PROMPT] = identity.prompt;
    numbers[CHOICE] = identity.choice;
    for (const [i, name] of DRAW_PARAMETERS.entries()) numbers[PARAMETERS + i] = parameters[name];
    return true;
  }

  read(index: number): DrawJob {
    const numbers = this.#of(index);
    const parameters = DRAW_PARAMETERS.map((name, i) => [name, numbers[PARAMETERS + i]!]);
    const topLogprobs = numbers[TOP_LOGPROBS]!;
    return {
      // `write` took them from such an object.
      parameters: Object.fromEntries(parameters) as DrawParameters,
      identity: {
        seed: this.#integers[index * SIZE + SEED]!,
        prompt: numbers[PROMPT]!,
        choice: numbers[CHOICE]!,
      },
      bound: numbers[BOUND]!,
      row: numbers[ROW]!,
      step: numbers[STEP]!,
      topLogprobs: topLogprobs === NONE ? null : topLogprobs,
    };
  }

  editsOf(index: number): Edits {
    const numbers = this.#of(index);
    const first = numbers[FIRST_EDIT]!;
    const end = first + numbers[EDIT_COUNT]!;
    return { ids: this.#editIds.subarray(first, end), values: this.#editValues.subarray(first, end) };
  }

  /** Bit set of the tokens that may come; null = all. */
  maskOf(index: number): Uint32Array | null {
    if (this.#of(index)[MASKED] === 0) return null;
    return this.#masks.subarray(index * this.#maskLength, (index + 1) * this.#maskLength);
  }

  /** @param bound Mirostat's, after the draw */
  writeResult(index: number, token: number, bound: number, logprobs: TokenLogprobs | null): void {
    const numbers = this.#of(index);
    numbers[TOKEN] = token;
    numbers[BOUND] = bound;
    if (logprobs === null) return;
    numbers[LOGPROB] = logprobs.logprob;
    numbers[TOP_COUNT] = logprobs.top.length;
    numbers.set(logprobs.top.flat(), TOP);
  }

  writeFailure(index: number): void {
    this.#of(index)[TOKEN] = NONE;
  }

  /** The drawn token; null if the draw failed. */
  token(index: number): number | null {
    const token = this.#of(index)[TOKEN]!;
    return token === NONE ? null : token;
  }

  /** Mirostat's bound: before the draw, then after it. */
  bound(index: number): number {
    return this.#of(index)[BOUND]!;
  }

  logprobs(index: number): TokenLogprobs {
    const numbers = this.#of(index);
    const top: [number, number][] = [];
    for (let rank = 0; rank < numbers[TOP_COUNT]!; rank++) {
      top.push([numbers[TOP + 2 * rank]!, numbers[TOP + 2 * rank + 1]!]);
    }
    return { logprob: numbers[LOGPROB]!, top };
  }

  #of(index: number): Float64Array {
    return this.#numbers.subarray(index * SIZE, (index + 1) * SIZE);
  }
}
