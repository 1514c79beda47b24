/** Whether it can be the id of a token in some vocabulary. */
export const isTokenId = (value: unknown): boolean => Number.isSafeInteger(value) && (value as number) >= 0;
