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

/** Accepts the path of a file as the hub names it. @throws HubError if it leaves the snapshot */
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
  /** Branch, tag or commit; null = not named. */
  readonly revision: string | null;
  /** A variant or a file; null = not named. */
  readonly variant: string | null;
}

/** Returns whether a model argument is a path: what exists is one, and what is written as one. */
export const isPath = (text: string): boolean =>
  path.isAbsolute(text) || /^\.{1,2}([/\\]|$)|^[^/:]+\.gguf$/i.test(text) || existsSync(text);

/**
 * Reads a path of a directory or of a .gguf file, or the name of a repository. What exists as a path is a
 * path.
 * @throws HubError
 */
export function readModelName(text: string, endpoint: string): ModelName {
  if (!isPath(text)) return readRepositoryName(text, endpoint);
  const stats = statSync(text, { throwIfNoEntry: false });
  if (stats === undefined) throw new HubError(`there is no file or directory ${text}`);
  if (stats.isDirectory()) return { kind: 'directory', path: path.resolve(text) };
  if (text.toLowerCase().endsWith('.gguf')) return { kind: 'gguf', path: path.resolve(text) };
  throw new HubError(`${text} is neither a directory nor a .gguf file`);
}

const HUB_ADDRESS =
  /^(?:hf:\/\/|(?:https?:\/\/)?(?:www\.)?(?:huggingface\.co|hf\.co)\/|(?:ssh:\/\/)?git@(?:huggingface\.co|hf\.co)[:/])/i;
const OTHER_ADDRESS = /^[a-z][a-z0-9+.-]*:\/\//i;
/** First segments of addresses that name no model. */
const OTHER_KINDS = ['datasets', 'spaces', 'collections', 'papers', 'docs', 'blog'];
/** Pages of the hub that show a revision, or a folder or file of it. */
const CONTENT_PAGES = ['tree', 'blob', 'resolve', 'raw', 'commit'];
const NAME = /^([^/:@]+\/[^/:@]+)(?:@([^:]*))?(?::(.+))?$/;

/**
 * Reads `owner/name[@revision][:variant]`, or the address of a repository, a folder or a file in a browser.
 * @param endpoint The hub's own address
 * @throws HubError
 */
export function readRepositoryName(text: string, endpoint: string): RepositoryName {
  const given = text.trim();
  const isOwn = given.startsWith(`${endpoint}/`);
  const isAddress = isOwn || HUB_ADDRESS.test(given);
  if (!isAddress && OTHER_ADDRESS.test(given)) {
    throw new HubError(
      `${given} is not an address of ${endpoint}; give owner/name, another hub in HF_ENDPOINT, or the path of a downloaded file`,
    );
  }
  const [place = '', query] = (isOwn ? given.slice(endpoint.length) : given.replace(HUB_ADDRESS, '')).split(
    /[?#]/,
  );
  const segments = place.split('/').filter((segment) => segment !== '');
  if (isAddress && segments[0] === 'api') segments.splice(0, 2);
  if (isAddress && OTHER_KINDS.includes(segments[0] ?? '')) {
    throw new HubError(`${given} is no model: the address of a model has the form ${endpoint}/owner/name`);
  }
  const shown = new URLSearchParams(query).get('show_file_info');
  const [, name, revision, variant] = NAME.exec(segments.join('/')) ?? [];
  if (name === undefined) {
    const inside = readPage(given, segments);
    return { ...inside, variant: shown ?? inside.variant };
  }
  return {
    kind: 'repository',
    repository: requireRepository(isAddress ? name.replace(/\.git$/, '') : name),
    revision: revision === undefined ? null : requireRevision(revision),
    variant: variant ?? shown,
  };
}

/** Reads `owner/name/tree/<revision>/<folder>`, `owner/name/blob/<revision>/<file>` and the like. */
function readPage(given: string, [owner, name, page = '', ...rest]: readonly string[]): RepositoryName {
  const repository = requireRepository(name === undefined ? (owner ?? given) : `${owner}/${name}`);
  // refs/pr/1, if its slashes are not escaped.
  const length = rest[0] === 'refs' ? 3 : 1;
  if (rest.length < length || !CONTENT_PAGES.includes(page)) {
    throw new HubError(`"${given}" is not a model name: did you mean ${repository}?`);
  }
  const revision = requireRevision(decode(rest.slice(0, length).join('/')));
  const inside = rest.slice(length).map(decode).join('/');
  return { kind: 'repository', repository, revision, variant: inside || null };
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Default of the option --revision. */
export const DEFAULT_REVISION = 'main';

/** What a name or an option says; `absent` is the option's default. @throws HubError if they differ */
export function nameOrOption<T extends string | undefined>(
  option: string,
  named: string | null,
  given: T,
  absent: T,
): string | T {
  if (named === null || named === given) return given;
  if (given === absent) return named;
  throw new HubError(`--${option} ${given} differs from ${named} in the model's name; give one of them`);
}
