import { existsSync, statSync } from 'node:fs';
import path from 'node:path';
import { HubError } from './hub-error.ts';

/** Reads and checks names that the command line or a hub supplies and that become parts of paths and URLs. */

const REPOSITORY = /^[A-Za-z0-9][\w.-]{0,95}\/[A-Za-z0-9_][\w.-]{0,95}$/;
const REVISION = /^[\w.-]+(?:\/[\w.-]+)*$/;

/** @throws HubError if the text is not `owner/name` */
export function requireRepository(text: string): string {
  if (!REPOSITORY.test(text) || text.includes('--') || text.includes('..')) {
    throw new HubError(`"${text}" is not a model name: it must have the form owner/name`);
  }
  return text;
}

/** Accepts a branch, a tag, a commit or a reference such as refs/pr/1. @throws HubError */
export function requireRevision(text: string): string {
  if (!REVISION.test(text) || !staysBelow(text)) throw new HubError(`"${text}" is not a valid revision`);
  return text;
}

/** Accepts the path of a file as the hub names it. @throws HubError if it could leave the snapshot's directory */
export function requireFilePath(file: string): string {
  if (!staysBelow(file))
    throw new HubError(`the hub lists a file with an unsafe path: ${JSON.stringify(file)}`);
  return file;
}

/** Refuses segments that end in a dot or a space: Windows drops these characters, so ".. " means "..". */
function staysBelow(file: string): boolean {
  const segments = file.split('/');
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are refused
  return segments.every((segment) => /[^. ]$/.test(segment)) && !/[\\:\u0000-\u001f\u007f]/.test(file);
}

/** What a model argument names. */
type ModelName = { readonly kind: 'directory' | 'gguf'; readonly path: string } | RepositoryName;

export interface RepositoryName {
  readonly kind: 'repository';
  /** `owner/name` */
  readonly repository: string;
  readonly variant: string | null;
}

/** Returns whether a model argument is a path: what exists is one, and what is written as one. */
export const isPath = (text: string): boolean =>
  path.isAbsolute(text) || /^\.{1,2}([/\\]|$)|^[^/:]+\.gguf$/i.test(text) || existsSync(text);

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
