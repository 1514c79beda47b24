/** Returns an error's name and stack without its message, because messages may quote a caller's data. */
export function bugTrace(thrown: unknown): { readonly name: string; readonly frames: readonly string[] } {
  if (!(thrown instanceof Error)) return { name: typeof thrown, frames: [] };
  return { name: thrown.name, frames: thrown.stack?.match(/^ +at .*$/gm) ?? [] };
}
