import type { PrefillChunk } from '../model/model-runner.ts';
import { DraftLength, lookUp } from './draft.ts';
import type { Sequence } from './sequence.ts';

/** Tokens that may come next in a sequence. Each is taken up only when the sampler draws it. */
export interface Draft {
  readonly sequence: Sequence;
  /** At least one, and fewer than the sequence may still generate. */
  readonly tokens: Int32Array;
}

/** When the engine speculates. A run over several positions rounds differently from one decode step per position. */
export interface SpeculationSettings {
  /** Most tokens of one draft; 0 = no speculation. */
  readonly maxTokens: number;
  /** Most sequences that may be decoding while the engine speculates. */
  readonly maxRows: number;
}

export const NO_SPECULATION: SpeculationSettings = { maxTokens: 0, maxRows: 1 };

/** Chooses the sequences whose next tokens are drafted by prompt look-up. */
export class Drafting {
  readonly #settings: SpeculationSettings;
  readonly #longestRun: number;
  readonly #lengths = new WeakMap<Sequence, DraftLength>();

  /** @param longestRun positions that one run can compute */
  constructor(settings: SpeculationSettings, longestRun: number) {
    this.#settings = settings;
    this.#longestRun = longestRun;
  }

  /** @param decoding the sequence decoding in each slot, or null */
  plan(decoding: readonly (Sequence | null)[]): Draft[] {
    const { maxTokens, maxRows } = this.#settings;
    if (maxTokens === 0) return [];
    const sequences = decoding.filter((sequence) => sequence !== null);
    return sequences.length > maxRows ? [] : sequences.flatMap((sequence) => this.#guess(sequence) ?? []);
  }

  /** @param accepted tokens of the draft that were drawn */
  observe({ sequence }: Draft, accepted: number): void {
    this.#lengths.get(sequence)?.observe(accepted);
  }

  #guess(sequence: Sequence): Draft | null {
    let length = this.#lengths.get(sequence);
    if (length === undefined) {
      length = new DraftLength(this.#settings.maxTokens);
      this.#lengths.set(sequence, length);
    }
    const most = Math.min(length.next(), this.#room(sequence));
    if (most === 0) return null;
    const tokens = lookUp(sequence.tokens, most);
    return tokens.length === 0 ? null : { sequence, tokens };
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
