import type { PrefillChunk } from '../model/model-runner.ts';
import { DraftLength, lookUp } from './draft.ts';
import type { Sequence } from './sequence.ts';
import type { Shortcuts } from './shortcuts.ts';

/** Tokens that may come next in a sequence. Each is taken up only when the sampler draws it. */
export interface Draft {
  readonly sequence: Sequence;
  /** At least one, and fewer than the sequence may still generate. */
  readonly tokens: Int32Array;
  /** How many of them came true is to be learnt from. */
  readonly guessed: boolean;
}

/**
 * Decides which sequences get more than one token out of the next step: those whose grammar leaves no choice, and with
 * few sequences decoding those whose text repeats itself.
 */
export class Drafting {
  readonly #shortcuts: Shortcuts;
  readonly #longestRun: number;
  readonly #lengths = new WeakMap<Sequence, DraftLength>();

  /** @param longestRun positions that one run can compute */
  constructor(shortcuts: Shortcuts, longestRun: number) {
    this.#shortcuts = shortcuts;
    this.#longestRun = longestRun;
  }

  /** @param decoding the sequence decoding in each slot, or null */
  plan(decoding: readonly (Sequence | null)[]): Draft[] {
    const { drafts, draftRows, forcedTokens } = this.#shortcuts;
    if (drafts === 0 && !forcedTokens) return [];
    const sequences = decoding.filter((sequence) => sequence !== null);
    const guessing = drafts > 0 && sequences.length <= draftRows;
    return sequences.flatMap(
      (sequence) =>
        (forcedTokens ? this.#forced(sequence) : null) ?? (guessing ? this.#guess(sequence) : null) ?? [],
    );
  }

  /** @param accepted tokens of the draft that were drawn */
  observe({ sequence, guessed }: Draft, accepted: number): void {
    if (guessed) this.#lengths.get(sequence)?.observe(accepted);
  }

  #forced(sequence: Sequence): Draft | null {
    const forced = sequence.forced();
    if (forced.length < 2) return null;
    const tokens = Int32Array.from(forced.slice(0, this.#room(sequence)));
    return tokens.length === 0 ? null : { sequence, tokens, guessed: false };
  }

  #guess(sequence: Sequence): Draft | null {
    let length = this.#lengths.get(sequence);
    if (length === undefined) {
      length = new DraftLength(this.#shortcuts.drafts);
      this.#lengths.set(sequence, length);
    }
    const most = Math.min(length.next(), this.#room(sequence));
    if (most === 0) return null;
    const tokens = lookUp(sequence.tokens, most);
    return tokens.length === 0 ? null : { sequence, tokens, guessed: true };
  }

  /** The last token is fed along with the draft, and one more is drawn after a draft that is all true. */
  #room(sequence: Sequence): number {
    return Math.min(this.#longestRun, sequence.remaining) - 1;
  }
}

/** The run that computes the sequence's last token and its draft, with the logits of every position. */
export function verification({ sequence, tokens: draft }: Draft): PrefillChunk {
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
