/** What a thrown value says of itself: anything can be thrown, not errors alone. */
export const messageOf = (thrown: unknown): string =>
  thrown instanceof Error ? thrown.message : String(thrown);
