/** Tokens that a device draws, so that a step brings back their ids in place of logits. */

/** Upper limit of the candidates of top-k that a device sorts. */
export const MAX_DRAWN_TOP_K = 1024;

/** Changes of single logits, by entry. */
export interface DrawEdits {
  readonly ids: Int32Array;
  /** 1 = the token may not come. */
  readonly forbidden: Uint8Array;
  /** EDIT_AMOUNTS numbers for each entry, in the order in which they apply. */
  readonly amounts: Float64Array;
}

/**
 * z ← z + first; z ← z / second if z > 0, else z · second; z ← z − third; z ← z − fourth, but never below the
 * lowest finite number. Each result is rounded to float32.
 */
export const EDIT_AMOUNTS = 4;

/** What a device needs to draw the next token of a row. */
export interface DrawRequest {
  /** Below MIN_TEMPERATURE, the largest logit is taken. */
  readonly isGreedy: boolean;
  /** 1 / temperature. */
  readonly coldness: number;
  /** In [0, 1): the place in the inverse CDF in ascending order of ids. */
  readonly uniform: number;
  /** 0 = none. At most MAX_DRAWN_TOP_K. */
  readonly topK: number;
  /** Share of the weight of which the fewest tokens are kept; from 1 on = none. */
  readonly share: number;
  /** Share of the largest weight that a token must have; 0 = none. */
  readonly ratio: number;
  /** Tokens that `share` and `ratio` keep at least. More than 1 only with top-k. */
  readonly minKeep: number;
  /** Most likely tokens to list, at most 20; null = no logprobs. */
  readonly listed: number | null;
  readonly edits: DrawEdits | null;
  /** Bit set of the tokens that may come; null = all. Must not change before the run has ended. */
  readonly mask: Uint32Array | null;
}

/** From all tokens by their probability, without logprobs. */
export const NEUTRAL_DRAW: DrawRequest = {
  isGreedy: false,
  coldness: 1,
  uniform: 0.5,
  topK: 0,
  share: 1,
  ratio: 0,
  minKeep: 0,
  listed: null,
  edits: null,
  mask: null,
};

/** A token that a device has drawn. */
export interface DrawnToken {
  readonly id: number;
  /** Of the row without edits and mask; null if no logprobs were asked for. */
  readonly scores: {
    /** Of the token. */
    readonly logit: number;
    /** ln Σ e^z */
    readonly normalizer: number;
    /** [id, logit] of the most likely tokens, best first, lower id first if equal. */
    readonly top: readonly (readonly [number, number])[];
  } | null;
}
