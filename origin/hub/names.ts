import { HubError } from './hub-error.ts';

/** Checks of names that the command line or a hub supplies and that become parts of paths and URLs. */

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
export function requireFilePath(path: string): string {
  if (!staysBelow(path))
    throw new HubError(`the hub lists a file with an unsafe path: ${JSON.stringify(path)}`);
  return path;
}

/** Refuses segments that end in a dot or a space: Windows drops these characters, so ".. " means "..". */
function staysBelow(path: string): boolean {
  const segments = path.split('/');
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are refused
  return segments.every((segment) => /[^. ]$/.test(segment)) && !/[\\:\u0000-\u001f\u007f]/.test(path);
}
