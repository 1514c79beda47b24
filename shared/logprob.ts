/** Stands for −∞ and all lower values, because JSON has no infinities. */
export const LOWEST_LOGPROB = -9_999;

/** Upper limit of top logprobs per token. */
export const MAX_TOP_LOGPROBS = 20;

/** Upper limit of ids whose logprobs a request may list. */
export const MAX_LISTED_LOGPROBS = 128;
