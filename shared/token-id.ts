/** Returns whether a value can be a token id: a non-negative safe integer. */
export const isTokenId = (value: unknown): value is number =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
