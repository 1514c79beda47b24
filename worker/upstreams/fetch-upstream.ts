import type { After } from '../timers/request-timers.ts';
import { withTimeLimit } from '../timers/time-limit.ts';
import { unreachable } from './upstream-errors.ts';

/** The platform's `fetch`, or that of a binding. */
export type Fetch = (url: string, init: RequestInit) => Promise<Response>;

export interface FetchOptions {
  readonly fetch: Fetch;
  /** Aborts the request, and the reading of its answer. */
  readonly signal: AbortSignal;
  readonly after: After;
  /** Milliseconds until the upstream must have answered with a status. */
  readonly acceptTimeoutMs: number;
}

/** Returns an upstream's answer with its body unread. @throws ApiError 502 without a connection, 504 after the timeout */
export function fetchUpstream(
  url: string,
  init: Omit<RequestInit, 'signal'>,
  { fetch, signal, after, acceptTimeoutMs }: FetchOptions,
): Promise<Response> {
  return withTimeLimit(
    { signal, after, ms: acceptTimeoutMs },
    // A redirect must not send the prompt to a host that the operator has not configured.
    (limited) => fetch(url, { ...init, redirect: 'manual', signal: limited }),
    (_, late) => unreachable(late ? 'timeout' : 'connection'),
  );
}

/**
 * Maximum length of one event, or of one JSON body, in characters. A longer one is malformed, because it would fill
 * the memory that all requests of an isolate share.
 */
export const MAX_MESSAGE_LENGTH = 16 * 1024 * 1024;

/**
 * Returns the JSON of an answer; null if it has none, is too long or breaks off.
 * @param prepare changes the text before it is parsed
 */
export async function readJsonBody(
  { body }: Response,
  prepare = (json: string): string => json,
): Promise<unknown> {
  if (body === null) return null;
  const decoder = new TextDecoder();
  let text = '';
  try {
    for await (const bytes of body) {
      text += decoder.decode(bytes, { stream: true });
      if (text.length > MAX_MESSAGE_LENGTH) return null;
    }
    return JSON.parse(prepare(text));
  } catch {
    return null;
  }
}
