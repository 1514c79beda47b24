/** Probability in 0..1 of a natural logarithm. */
export const probabilityOf = (logprob: number): number => Math.exp(logprob);

/** Returns the decile of a probability, 0..9: 9 means 90 % and more. */
export const decileOf = (logprob: number): number =>
  Math.min(9, Math.max(0, Math.floor(probabilityOf(logprob) * 10)));

/** Class of a token's tint; '' for a token without a probability. */
export const tintClass = (logprob: number | null): string =>
  logprob === null ? 'token' : `token p${decileOf(logprob)}`;

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

/** Returns exp of the mean negative logprob; null without tokens that have one. */
export function perplexityOf(logprobs: readonly (number | null)[]): number | null {
  const known = logprobs.filter((logprob) => logprob !== null);
  if (known.length === 0) return null;
  return Math.exp(-known.reduce((sum, logprob) => sum + logprob, 0) / known.length);
}

/** Returns the mean logprob of the tokens that have one; null without any. */
export function meanLogprob(tokens: readonly { readonly logprob: number | null }[]): number | null {
  const known = tokens.filter(({ logprob }) => logprob !== null);
  return known.length === 0 ? null : jointLogprob(known)! / known.length;
}

/** Returns a probability in whole per cent, such as `41 %`. */
export const percentOf = (logprob: number): string => `${Math.round(probabilityOf(logprob) * 100)} %`;
