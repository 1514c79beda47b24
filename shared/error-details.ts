/** Returns the message of a thrown value, which may not be an Error. */
export const errorMessage = (thrown: unknown): string =>
  thrown instanceof Error ? thrown.message : String(thrown);

/** Returns the message without line breaks. */
export const oneLine = (thrown: unknown): string => errorMessage(thrown).replaceAll(/\s+/g, ' ').trim();

/** Returns the operating system's error code, such as ENOENT; undefined for all other thrown values. */
export const errorCode = (thrown: unknown): string | undefined =>
  thrown instanceof Error && 'code' in thrown && typeof thrown.code === 'string' ? thrown.code : undefined;

/** The name and stack of an error, without its message, because messages may quote a caller's data. */
export interface BugTrace {
  readonly name: string;
  readonly frames: readonly string[];
}

export function bugTrace(thrown: unknown): BugTrace {
  if (!(thrown instanceof Error)) return { name: typeof thrown, frames: [] };
  return { name: thrown.name, frames: thrown.stack?.match(/^ +at .*$/gm) ?? [] };
}
