/** Replaces −∞ and all smaller values, because JSON has no infinities. */
export const LOWEST_LOGPROB = -9_999;

/** Maximum number of alternatives per token. */
export const MOST_ALTERNATIVES = 20;
