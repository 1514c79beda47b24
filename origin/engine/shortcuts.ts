/**
 * Ways to spend less time on a token whose results differ from the usual ones by rounding, so that each is the
 * operator's choice: a run over several positions rounds otherwise than one decode step per position.
 */
export interface Shortcuts {
  /** Tokens guessed ahead of a sequence that decodes nearly alone; 0 = none. The answer then depends on company. */
  readonly drafts: number;
  /** Sequences that may be decoding at once for guesses to be made. */
  readonly draftRows: number;
  /** Several tokens that a grammar forces are computed in one run. A function of the request alone. */
  readonly forcedTokens: boolean;
  /** Finished sequences leave the KV of generated tokens, too. The answer then depends on what was asked before. */
  readonly cacheGenerated: boolean;
}

export const NO_SHORTCUTS: Shortcuts = {
  drafts: 0,
  draftRows: 1,
  forcedTokens: false,
  cacheGenerated: false,
};
