import { errorCode } from '@continuo/shared/error-details.ts';

/** A failure that the user can act on. The message is one line. */
export class HubError extends Error {
  override readonly name = 'HubError';
}

/** All attempts to reach the hub have failed. */
export class HubUnreachable extends HubError {}

/** A failure that a retry may fix: a lost connection, an overloaded server. */
export class TransientHubError extends Error {
  override readonly name = 'TransientHubError';
  /** Delay that the server asks for, in milliseconds; null if it names none. */
  readonly retryAfterMs: number | null;

  constructor(message: string, retryAfterMs: number | null = null) {
    super(message);
    this.retryAfterMs = retryAfterMs;
  }
}

/** What a request to the hub is about. */
export interface HubTarget {
  /** `owner/name`. */
  readonly repository: string;
  /** Branch, tag or commit. */
  readonly revision: string;
  /** A file of the repository; absent for the repository itself. */
  readonly path?: string;
}

const MAX_SERVER_MESSAGE_CHARACTERS = 200;

/** Maps an unexpected HTTP status of the hub to the error to throw. */
export function statusError(
  status: number,
  headers: Headers,
  { repository, revision, path }: HubTarget,
  { endpoint, token }: { readonly endpoint: string; readonly token: string | null },
): HubError | TransientHubError {
  const { host } = new URL(endpoint);
  if (status === 408 || status === 429 || status >= 500) {
    return new TransientHubError(`${host} answered ${status}`, retryAfterMs(headers));
  }
  const code = headers.get('x-error-code');
  if (code === 'GatedRepo') {
    const advice = token === null ? ' and set HF_TOKEN' : '';
    return new HubError(`${repository} is gated: request access at ${endpoint}/${repository}${advice}`);
  }
  // The hub answers 401 both for private repositories and for missing ones.
  if (status === 401 && token === null) {
    return new HubError(`${repository} does not exist or is private; for a private model, set HF_TOKEN`);
  }
  if (status === 401) return new HubError(`the hub rejects the token for ${repository}`);
  if (status === 404 && path !== undefined) return new HubError(`${repository} has no file ${path}`);
  if (status === 404 && code === 'RevisionNotFound') {
    return new HubError(`${repository} has no revision ${revision}`);
  }
  if (status === 404) return new HubError(`${host} has no model ${repository}`);
  const message = headers.get('x-error-message')?.slice(0, MAX_SERVER_MESSAGE_CHARACTERS);
  return new HubError(`${host} answered ${status} for ${path ?? repository}${message ? `: ${message}` : ''}`);
}

/** Reads Retry-After in seconds. A date is ignored; the usual delay applies. */
function retryAfterMs(headers: Headers): number | null {
  const seconds = Number(headers.get('retry-after') ?? Number.NaN);
  return Number.isFinite(seconds) && seconds >= 0 ? seconds * 1000 : null;
}

/**
 * Runs `work`. Rewrites errors of the file system to one line.
 * @param directory Named in the message if the error has no path
 * @throws HubError for errors of the file system; other errors unchanged
 */
export async function withDiskErrors<T>(directory: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const code = errorCode(error);
    if (code === undefined) throw error;
    const place = (error as NodeJS.ErrnoException).path ?? directory;
    if (code === 'ENOSPC' || code === 'EDQUOT') throw new HubError(`the disk is full: ${place}`);
    if (code === 'EACCES' || code === 'EPERM' || code === 'EROFS') {
      throw new HubError(`no permission to write ${place}`);
    }
    throw new HubError(`cannot write ${place}: ${code}`);
  }
}
