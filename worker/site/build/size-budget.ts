import { gzipSync } from 'node:zlib';
import type { Plugin } from 'vite';

/** What the budget reads of one file of the build. */
export interface BuiltChunk {
  readonly code: string;
  readonly isEntry: boolean;
  /** Files that load together with this one; lazy imports are not among them. */
  readonly imports: readonly string[];
}

/** Returns the gzipped bytes of JavaScript that each entry loads before its first view. */
export function firstLoadBytes(chunks: ReadonlyMap<string, BuiltChunk>): ReadonlyMap<string, number> {
  const sizes = new Map([...chunks].map(([file, { code }]) => [file, gzipSync(code).byteLength]));
  const entries = [...chunks].filter(([, { isEntry }]) => isEntry);
  return new Map(
    entries.map(([entry]) => {
      const loaded = new Set([entry]);
      for (const file of loaded) for (const name of chunks.get(file)?.imports ?? []) loaded.add(name);
      return [entry, [...loaded].reduce((sum, file) => sum + (sizes.get(file) ?? 0), 0)];
    }),
  );
}

/** Returns the files above `limit` gzipped bytes, as "file: size in KB". */
export const oversized = (chunks: ReadonlyMap<string, Pick<BuiltChunk, 'code'>>, limit: number): string[] =>
  [...chunks]
    .map(([file, { code }]) => ({ file, bytes: gzipSync(code).byteLength }))
    .filter(({ bytes }) => bytes > limit)
    .map(({ file, bytes }) => `${file}: ${(bytes / 1024).toFixed(1)} KB`);

/**
 * Fails the build if an entry loads more than `limit` gzipped bytes of JavaScript at first, or if a file that
 * is loaded later has more than `lazyLimit`.
 */
export const sizeBudget = (limit: number, lazyLimit: number): Plugin => ({
  name: 'size-budget',
  generateBundle(_, bundle) {
    const outputs = Object.values(bundle).filter((output) => output.type === 'chunk');
    const chunks = new Map(outputs.map((chunk) => [chunk.fileName, chunk]));
    const tooLarge = oversized(chunks, lazyLimit);
    if (tooLarge.length > 0)
      this.error(`The limit of a file is ${lazyLimit / 1024} KB: ${tooLarge.join(', ')}.`);
    for (const [entry, bytes] of firstLoadBytes(chunks)) {
      const shown = `${entry} loads ${(bytes / 1024).toFixed(1)} KB of gzipped JavaScript at first`;
      if (bytes > limit) this.error(`${shown}; the limit is ${limit / 1024} KB.`);
      this.info(`${shown} (limit ${limit / 1024} KB).`);
    }
  },
});
