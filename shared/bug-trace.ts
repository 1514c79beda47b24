/** Where a bug is, without its message: messages may quote what a caller sent. */
export function bugTrace(thrown: unknown): { readonly name: string; readonly frames: readonly string[] } {
  if (!(thrown instanceof Error)) return { name: typeof thrown, frames: [] };
  return { name: thrown.name, frames: thrown.stack?.match(/^ +at .*$/gm) ?? [] };
}
