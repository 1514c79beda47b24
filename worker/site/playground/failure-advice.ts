import type { FailureKind, RequestFailure } from '../api/request-failure.ts';

/** What happened, and what to do. The server's message says why. */
type Advice = readonly [what: string, todo: string];

const ADVICE: Readonly<Record<FailureKind, Advice>> = {
  'no-key': ['This page has no API key', 'Enter the key that the server printed, or ask its operator.'],
  'key-refused': ['The server refused the key', 'Enter another key, or ask the operator of this endpoint.'],
  'rate-limited': ['Too many requests', 'Your limit per minute is used up. Retry when the countdown ends.'],
  'quota-exhausted': ['The quota is used up', 'Ask the operator for more, or retry in the next period.'],
  'model-loading': [
    'The model is loading',
    'The first request to a model starts it. The page retries by itself.',
  ],
  'invalid-request': ['The server rejected the request', 'Change the text or the parameters, then retry.'],
  overloaded: ['The server is overloaded', 'Nothing is lost. Retry in a moment.'],
  'origin-down': [
    'The model server failed',
    'Nothing is lost. If a retry does not help, look at the log of the origin.',
  ],
  'timed-out': ['The request took too long', 'Nothing is lost. Retry, or ask for fewer tokens.'],
  'server-error': [
    'The server had an error',
    'Nothing is lost. Retry; if it happens again, report the request id.',
  ],
  offline: ['This device is offline', 'Nothing is lost. Connect, then retry.'],
  unreachable: ['The endpoint does not answer', 'Nothing is lost. Check that the server runs, then retry.'],
  'cut-stream': ['The stream was interrupted', 'The text so far is kept. A retry continues from its end.'],
  'not-open': [
    'The model does not run in this browser',
    'Nothing is lost. Open it with Run here, then retry.',
  ],
};

export const adviceFor = ({ kind, param }: Pick<RequestFailure, 'kind' | 'param'>): Advice =>
  kind === 'invalid-request' && param !== null
    ? [ADVICE[kind][0], `Correct ${param}, then retry.`]
    : ADVICE[kind];

/** Writes a time as people do: 43,199 s are 12 h. */
export function waitText(seconds: number): string {
  if (seconds < 120) return `${seconds} s`;
  const minutes = Math.ceil(seconds / 60);
  if (minutes < 120) return `${minutes} min`;
  const hours = Math.ceil(minutes / 60);
  return hours < 48 ? `${hours} h` : `${Math.ceil(hours / 24)} days`;
}

/** Used for a loading model if the stream had begun before the server knew the time. */
const LOADING_WAIT_MS = 2_000;

/** Returns the milliseconds before a retry. */
export const waitBeforeRetry = ({ kind, retryAfterMs }: RequestFailure): number =>
  retryAfterMs ?? (kind === 'model-loading' ? LOADING_WAIT_MS : 0);
