import { HubError } from './hub-error.ts';

/** Names that come from the command line or from a hub and become parts of paths and URLs. */

const REPOSITORY = /^[A-Za-z0-9][\w.-]{0,95}\/[A-Za-z0-9_][\w.-]{0,95}$/;
const REVISION = /^[\w.-]+(?:\/[\w.-]+)*$/;

/** @throws HubError when the text is not `owner/name` */
export function requireRepository(text: string): string {
  if (!REPOSITORY.test(text) || text.includes('--') || text.includes('..')) {
    throw new HubError(`"${text}" is not the name of a model: it must look like owner/name`);
  }
  return text;
}

/** A branch, a tag, a commit or a reference such as refs/pr/1. @throws HubError */
export function requireRevision(text: string): string {
  if (!REVISION.test(text) || !isInside(text)) throw new HubError(`"${text}" is not the name of a revision`);
  return text;
}

/** The path of a file inside a repository, as the hub names it. @throws HubError when it would leave its directory */
export function requireInside(path: string): string {
  if (!isInside(path)) throw new HubError(`the hub names a file outside the model: ${JSON.stringify(path)}`);
  return path;
}

function isInside(path: string): boolean {
  const segments = path.split('/');
  const plain = (segment: string) => !['', '.', '..'].includes(segment);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
  return segments.every(plain) && !/[\\:\u0000-\u001f\u007f]/.test(path);
}
