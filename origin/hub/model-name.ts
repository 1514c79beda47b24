import { existsSync, statSync } from 'node:fs';
import path from 'node:path';
import { HubError } from './hub-error.ts';
import { requireRepository } from './names.ts';

/** What a model argument names. */
export type ModelName = { readonly kind: 'directory' | 'gguf'; readonly path: string } | RepositoryName;

export interface RepositoryName {
  readonly kind: 'repository';
  /** `owner/name` */
  readonly repository: string;
  readonly variant: string | null;
}

/** Returns whether a model argument is a path: what exists is one, and what is written as one. */
export const isPath = (text: string): boolean =>
  path.isAbsolute(text) || /^\.{1,2}([/\\]|$)/.test(text) || existsSync(text);

/**
 * Reads a path of a directory or of a .gguf file, or `owner/name[:variant]`. What exists as a path is a path.
 * @throws HubError
 */
export function readModelName(text: string): ModelName {
  if (isPath(text)) {
    const found = statSync(text, { throwIfNoEntry: false });
    if (found === undefined) throw new HubError(`there is no file or directory ${text}`);
    if (found.isDirectory()) return { kind: 'directory', path: path.resolve(text) };
    if (text.toLowerCase().endsWith('.gguf')) return { kind: 'gguf', path: path.resolve(text) };
    throw new HubError(`${text} is neither a directory nor a .gguf file`);
  }
  const [, name, variant] = /^([^:]*)(?::(.+))?$/.exec(text) ?? [];
  return { kind: 'repository', repository: requireRepository(name ?? text), variant: variant ?? null };
}
