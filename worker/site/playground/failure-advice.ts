import type { FailureKind, RequestFailure } from '../api/request-failure.ts';

/** What to tell about a failure: what happened, and what to do. The server's message says why. */
export interface Advice {
  readonly what: string;
  readonly todo: string;
  /** What the button does. */
  readonly action: 'retry' | 'key' | 'none';
}

const ADVICE: Readonly<Record<FailureKind, Advice>> = {
  'no-key': { what: 'This page has no API key', todo: 'Enter a key. npm start prints one.', action: 'key' },
  'key-refused': {
    what: 'The server refused the key',
    todo: 'Enter another key, or ask the operator of this endpoint.',
    action: 'key',
  },
  'rate-limited': {
    what: 'Too many requests',
    todo: 'Your limit per minute is used up. Retry when the countdown ends.',
    action: 'retry',
  },
  'quota-exhausted': {
    what: 'The quota is used up',
    todo: 'Ask the operator for more, or retry in the next period.',
    action: 'retry',
  },
  'model-loading': {
    what: 'The model is loading',
    todo: 'The first request to a model starts it. The page retries by itself.',
    action: 'retry',
  },
  'invalid-request': {
    what: 'The server rejected the request',
    todo: 'Change the text or the parameters, then retry.',
    action: 'retry',
  },
  overloaded: {
    what: 'The server is overloaded',
    todo: 'Nothing is lost. Retry in a moment.',
    action: 'retry',
  },
  'origin-down': {
    what: 'The model server does not answer',
    todo: 'Nothing is lost. If a retry does not help, look at the log of the origin.',
    action: 'retry',
  },
  'server-error': {
    what: 'The server had an error',
    todo: 'Nothing is lost. Retry; if it happens again, report the request id.',
    action: 'retry',
  },
  offline: {
    what: 'This device is offline',
    todo: 'Nothing is lost. Connect, then retry.',
    action: 'retry',
  },
  unreachable: {
    what: 'The endpoint does not answer',
    todo: 'Nothing is lost. Check that the server runs, then retry.',
    action: 'retry',
  },
  'cut-stream': {
    what: 'The stream was interrupted',
    todo: 'The text so far is kept. A retry continues from its end.',
    action: 'retry',
  },
};

export function adviceFor({ kind, param }: Pick<RequestFailure, 'kind' | 'param'>): Advice {
  const named = kind === 'invalid-request' && param !== null;
  return named ? { ...ADVICE[kind], todo: `Correct ${param}, then retry.` } : ADVICE[kind];
}

/** Used for a loading model if the stream had begun before the server knew the time. */
const LOADING_WAIT_MS = 2_000;

/** Returns the milliseconds before a retry. */
export const waitBeforeRetry = ({ kind, retryAfterMs }: RequestFailure): number =>
  retryAfterMs ?? (kind === 'model-loading' ? LOADING_WAIT_MS : 0);
