/** Probability in 0..1 of a natural logarithm. */
export const probabilityOf = (logprob: number): number => Math.exp(logprob);

/** Steps of the tint. */
export const TINT_LEVELS = [1, 2, 3, 4, 5] as const;

/**
 * Returns the step of a token's tint by its surprise, −log2 of its probability. 0 = no tint: below two bits
 * (above 25 %), a token is no surprise. Each further bit is one step; the last one begins at six bits (1.6
 * %).
 */
export const tintLevel = (logprob: number): number =>
  Math.min(TINT_LEVELS.length, Math.max(0, Math.floor(-logprob / Math.LN2) - 1));

/** Class of a token's tint; '' for a token without a probability. */
export const tintClass = (logprob: number | null): string =>
  logprob === null ? 'token' : `token s${tintLevel(logprob)}`;

/** Returns the logprob of tokens that form one character together; null if one of them has none. */
export function jointLogprob(tokens: readonly { readonly logprob: number | null }[]): number | null {
  return tokens.reduce<number | null>(
    (sum, { logprob }) => (sum === null || logprob === null ? null : sum + logprob),
    0,
  );
}

/** Returns `41.2 %`; small values keep two significant digits. */
export function percent(logprob: number): string {
  const value = probabilityOf(logprob) * 100;
  if (value >= 0.1 || value === 0) return `${value.toFixed(1)} %`;
  return value < 1e-6 ? '< 0.000001 %' : `${value.toPrecision(2)} %`;
}

/** Returns a number with a true minus sign. */
export const decimal = (value: number, digits = 1): string => value.toFixed(digits).replace('-', '−');

/** Returns the mean logprob of the tokens that have one; null without any. */
export function meanLogprob(tokens: readonly { readonly logprob: number | null }[]): number | null {
  const scored = tokens.filter(({ logprob }) => logprob !== null);
  return scored.length === 0 ? null : jointLogprob(scored)! / scored.length;
}

/** Returns exp of the mean negative logprob; null without tokens that have one. */
export function perplexityOf(tokens: Parameters<typeof meanLogprob>[0]): number | null {
  const mean = meanLogprob(tokens);
  return mean === null ? null : Math.exp(-mean);
}

/** Returns a probability in whole per cent, such as `41 %`. */
export const percentOf = (logprob: number): string => `${Math.round(probabilityOf(logprob) * 100)} %`;

/** Returns the probability of all tokens that are not listed. */
export const probabilityBeside = (listed: readonly { readonly logprob: number }[]): number =>
  Math.max(0, 1 - listed.reduce((sum, { logprob }) => sum + probabilityOf(logprob), 0));
