import { HubError, TransientError } from './hub-error.ts';
import type { HubSettings } from './hub-settings.ts';

/** A hub's error answers in words. */

export interface Subject {
  readonly repository: string;
  readonly revision: string;
  /** Absent = the repository itself was asked for. */
  readonly path?: string;
  readonly settings: Pick<HubSettings, 'endpoint' | 'token'>;
}

/** Characters of a hub's own words that are shown. */
const LONGEST_WORDS = 200;

/** The error to throw for a status of 400 or more, or one that was not expected. */
export function refusal(status: number, headers: Headers, subject: Subject): HubError | TransientError {
  const host = new URL(subject.settings.endpoint).host;
  if (status === 408 || status === 429 || status >= 500) {
    return new TransientError(`${host} answered ${status}`, retryAfterMs(headers));
  }
  const known = headers.get('x-error-code');
  if (known === 'GatedRepo') return gated(subject);
  if (status === 401) return notKnown(subject);
  if (status === 404) return missing(known, subject, host);
  const said = headers.get('x-error-message')?.slice(0, LONGEST_WORDS);
  const why = said ? `: ${said}` : '';
  return new HubError(`${host} answered ${status} for ${subject.path ?? subject.repository}${why}`);
}

/** The hub answers 401 without saying whether a repository is private or does not exist. */
function notKnown({ repository, settings }: Subject): HubError {
  if (settings.token !== null) return new HubError(`the hub does not accept the token for ${repository}`);
  return new HubError(`${repository} does not exist, or is private: then set HF_TOKEN`);
}

function gated({ repository, settings }: Subject): HubError {
  const ask = `${repository} is gated: ask for access at ${settings.endpoint}/${repository}`;
  return new HubError(settings.token === null ? `${ask} and set HF_TOKEN` : ask);
}

function missing(known: string | null, { repository, revision, path }: Subject, host: string): HubError {
  if (path !== undefined) return new HubError(`${repository} has no file ${path}`);
  if (known === 'RevisionNotFound') return new HubError(`${repository} has no revision ${revision}`);
  return new HubError(`${host} has no model ${repository}`);
}

/** Seconds, as rate limits give them; a date is left to the usual back-off. */
function retryAfterMs(headers: Headers): number | null {
  const seconds = Number(headers.get('retry-after') ?? Number.NaN);
  return Number.isFinite(seconds) && seconds >= 0 ? seconds * 1000 : null;
}
