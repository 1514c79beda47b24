/** What stands for −∞ and everything below it: JSON has no infinities. */
export const LOWEST_LOGPROB = -9_999;

/** At most so many alternatives are told of a token. */
export const MOST_ALTERNATIVES = 20;
