import type { PrefillChunk } from '../model/model-runner.ts';
import type { Sequence } from './sequence.ts';

/**
 * Speculation by prompt look-up: drafts the tokens that followed the last time the text ended like this. One run checks a
 * draft, and the engine accepts only the tokens that the sampler draws itself. A run over several positions rounds
 * differently from one decode step per position, so the feature is off by default.
 */
export interface SpeculationSettings {
  /** Maximum number of tokens of one draft; 0 = no speculation. */
  readonly maxTokens: number;
  /** Maximum number of sequences that may be decoding while the engine speculates. */
  readonly maxRows: number;
}

export const NO_SPECULATION: SpeculationSettings = { maxTokens: 0, maxRows: 1 };

/** Tokens that may come next in a sequence. */
export interface Draft {
  readonly sequence: Sequence;
  /** At least one, and fewer than the sequence may still generate. */
  readonly tokens: Int32Array;
}

/** Drafts tokens for the decoding sequences. */
export class Speculation {
  readonly #settings: SpeculationSettings;
  readonly #maxRun: number;
  readonly #lengths = new WeakMap<Sequence, DraftLength>();

  /** @param maxRun most positions of one run */
  constructor(settings: SpeculationSettings, maxRun: number) {
    this.#settings = settings;
    this.#maxRun = maxRun;
  }

  /**
   * Returns the drafts to check in this step; empty if too many sequences decode.
   * @param decoding the sequence decoding in each slot, or null
   */
  drafts(decoding: readonly (Sequence | null)[]): Draft[] {
    const { maxTokens, maxRows } = this.#settings;
    if (maxTokens === 0) return [];
    const sequences = decoding.filter((sequence) => sequence !== null);
    return sequences.length > maxRows ? [] : sequences.flatMap((sequence) => this.#draft(sequence) ?? []);
  }

  /** Adapts the length of the sequence's next drafts to the number of accepted tokens. */
  observe({ sequence }: Draft, accepted: number): void {
    this.#lengths.get(sequence)?.observe(accepted);
  }

  #draft(sequence: Sequence): Draft | null {
    let length = this.#lengths.get(sequence);
    if (length === undefined) {
      length = new DraftLength(this.#settings.maxTokens);
      this.#lengths.set(sequence, length);
    }
    // The run also feeds the last token, and one more token is drawn after a draft that is accepted in full.
    const room = Math.min(this.#maxRun, sequence.remaining) - 1;
    const count = Math.min(length.next(), room);
    if (count === 0) return null;
    const tokens = lookUp(sequence.tokens, count);
    return tokens.length === 0 ? null : { sequence, tokens };
  }
}

/** Returns the run over a sequence's last token and its draft, with the logits of every position. */
export function draftRun({ sequence, tokens: draft }: Draft): PrefillChunk {
  const tokens = new Int32Array(draft.length + 1);
  tokens[0] = sequence.lastToken;
  tokens.set(draft, 1);
  return {
    slot: sequence.slot,
    start: sequence.computed,
    tokens,
    logitsAt: Int32Array.from(tokens, (_, index) => index),
  };
}

/** Longest ending that is searched for. */
const MAX_MATCH = 3;

/**
 * Returns `count` tokens that followed the most recent earlier occurrence of the longest known ending. If they reach the
 * end of the text, they repeat. Empty if the last token has not occurred before.
 * @param tokens prompt and output so far
 */
export function lookUp(tokens: Int32Array, count: number): Int32Array {
  const last = tokens.length - 1;
  let found = -1;
  let longest = 0;
  for (let end = last - 1; end >= 0 && longest < MAX_MATCH; end--) {
    let length = 0;
    while (length < MAX_MATCH && length <= end && tokens[end - length] === tokens[last - length]) length++;
    if (length > longest) {
      longest = length;
      found = end;
    }
  }
  if (found < 0) return new Int32Array(0);
  const period = last - found;
  return Int32Array.from({ length: count }, (_, at) => tokens[found + 1 + (at % period)]!);
}

const MIN_DRAFT = 2;
/** Steps without a draft after a first rejected one, and at most, after several in a row. */
const FIRST_PAUSE = 4;
const MAX_PAUSE = 64;

/**
 * Length of one sequence's drafts: short at first, then twice the number of tokens accepted last. After a draft of which
 * no token was accepted it is 0 for some steps, twice as many each time.
 */
export class DraftLength {
  readonly #max: number;
  #length: number;
  #misses = 0;
  #pause = 0;

  /** @param max most tokens of one draft, at least 1 */
  constructor(max: number) {
    this.#max = max;
    this.#length = Math.min(MIN_DRAFT, max);
  }

  /** Returns the length for this step; called once per step. 0 = no draft. */
  next(): number {
    if (this.#pause === 0) return this.#length;
    this.#pause--;
    return 0;
  }

  /** @param accepted tokens of the last draft that were accepted */
  observe(accepted: number): void {
    if (accepted === 0) this.#pause = Math.min(MAX_PAUSE, FIRST_PAUSE * 2 ** this.#misses++);
    else this.#misses = 0;
    this.#length = Math.min(this.#max, Math.max(MIN_DRAFT, 2 * accepted));
  }
}
