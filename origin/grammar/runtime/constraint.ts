/** An operation of a constraint has to be called again in a later step. What it has computed is kept. */
export class UnfinishedWork extends Error {
  override readonly name = 'UnfinishedWork';
}

/**
 * The constraint of one sequence, as the sampler sees it. It works on bytes. An operation whose work exceeds
 * that of one call throws UnfinishedWork. What `accept` and `acceptBytes` have left to do, the next operation
 * does first.
 */
export interface Constraint {
  /**
   * The allowed tokens: bit (id & 31) of word (id >>> 5). Special tokens and end tokens are never set; for
   * the end, see `accepting`. The constraint owns the array, which is valid until the next `accept`.
   */
  mask(): Uint32Array;
  /**
   * Whether the text so far is a complete match, so that the sequence may end here. Known when `mask` has
   * returned.
   */
  readonly accepting: boolean;
  /** Whether the text so far and a reference to this token are a complete match. */
  completesWith?(token: number): boolean;
  /**
   * Advances by one token.
   * @throws Error if `mask` does not allow the token
   */
  accept(token: number): void;
  /** Whether the text may go on with these bytes. */
  allowsBytes(bytes: Uint8Array): boolean;
  /** Advances by bytes that it allows. */
  acceptBytes(bytes: Uint8Array): void;
  /** Returns a function that goes back to this place of the text. */
  save(): () => void;
}

/** A compiled grammar. All sequences that use it share it. */
export interface CompiledGrammar {
  /** Keywords of its schemas that are not enforced because no specification knows them. */
  readonly ignoredKeywords?: readonly string[];
  /** @param onWork called after each operation of the constraint with the units of work that it took */
  start(onWork?: (units: number) => void): Constraint;
}
