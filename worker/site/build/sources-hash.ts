import { createHash } from 'node:crypto';
import { globSync, readFileSync, statSync } from 'node:fs';
import path from 'node:path';

/** What a build writes or npm installs. */
const MADE = new Set(['dist', 'node_modules']);

/** Returns a hash of the names and the contents of the files that match the patterns. */
export function sourcesHash(root: string, patterns: readonly string[]): string {
  const hash = createHash('sha256');
  const files = globSync([...patterns], { cwd: root, exclude: (name) => MADE.has(path.basename(name)) });
  for (const file of files.toSorted()) {
    const absolute = path.join(root, file);
    if (statSync(absolute).isFile()) hash.update(file).update('\0').update(readFileSync(absolute));
  }
  return hash.digest('hex');
}
