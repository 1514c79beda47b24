/** Whether it can be the id of a token in some vocabulary. */
export const isTokenId = (value: unknown): value is number =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
