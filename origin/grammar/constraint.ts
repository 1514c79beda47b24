/** What a generation must match, seen from the sampler: one object per sequence, byte-level underneath. */
export interface Constraint {
  /**
   * Tokens that may come next: bit (id & 31) of word (id >>> 5). Special tokens never match text; the end tokens' bits
   * are not set here, see `accepting`. Owned by the constraint, valid until the next `accept`.
   */
  mask(): Uint32Array;
  /** True when the text so far is a complete match, so that the sequence may end here. */
  readonly accepting: boolean;
  /** Advances by a token that `mask` allows. */
  accept(token: number): void;
}

/** A compiled grammar, shared by all sequences that use it. */
export interface CompiledGrammar {
  start(): Constraint;
}
