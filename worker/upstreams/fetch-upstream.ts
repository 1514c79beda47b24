import type { ApiError } from '@continuo/shared/errors.ts';
import type { After } from '@continuo/shared/time-limit.ts';
import { unreachable } from './upstream-errors.ts';

/** The platform's `fetch`, or that of a binding. */
export type Fetch = (url: string, init: RequestInit) => Promise<Response>;

/** What limits the time until an upstream answers with a status. */
export interface Acceptance {
  readonly after: After;
  readonly ms: number;
  /** Aborts the request's signal with this reason. */
  readonly abort: (reason: ApiError) => void;
}

interface FetchOptions {
  readonly fetch: Fetch;
  /** Aborts the request, and the reading of its response. */
  readonly signal: AbortSignal;
  /** Absent = the caller limits the time. */
  readonly acceptance?: Acceptance | undefined;
}

/** Returns an upstream's response with its body unread. @throws ApiError 502 without a connection */
export async function fetchUpstream(
  url: string,
  init: Omit<RequestInit, 'signal'>,
  { fetch, signal, acceptance }: FetchOptions,
): Promise<Response> {
  const accepted = acceptance?.after(acceptance.ms, () => acceptance.abort(unreachable('timeout')));
  try {
    // A redirect must not send the prompt to a host that the operator has not configured.
    return await fetch(url, { ...init, redirect: 'manual', signal });
  } catch {
    throw unreachable('connection');
  } finally {
    accepted?.();
  }
}

/**
 * Maximum length of one event, or of one JSON body, in characters. A longer one is malformed, because it
 * would fill the memory that all requests of an isolate share.
 */
export const MAX_MESSAGE_LENGTH = 16 * 1024 * 1024;

/**
 * Read at a time. Most bodies arrive in one such read, which costs less than several of the platform's
 * choice.
 */
const READ_BYTES = 16_384;

/**
 * Returns the JSON of a response; null if it has none, is too long or breaks off.
 * @param prepare changes the text before it is parsed
 */
export async function readJsonBody(
  response: Response,
  prepare = (json: string): string => json,
): Promise<unknown> {
  const { headers } = response;
  const length = Number(headers.get('content-length') ?? Infinity);
  if (length <= MAX_MESSAGE_LENGTH && !headers.has('content-encoding')) {
    return response
      .text()
      .then(prepare)
      .then(JSON.parse)
      .catch(() => null);
  }
  const { body } = response;
  if (body === null) return null;
  const reader = body.getReader({ mode: 'byob' });
  // The platform's types lack the second parameter.
  const read = reader.read.bind(reader) as (
    view: Uint8Array,
    options: { readonly min: number },
  ) => Promise<ReadableStreamReadResult<Uint8Array>>;
  const decoder = new TextDecoder();
  let text = '';
  try {
    for (let ended = false; !ended; ) {
      const { value } = await read(new Uint8Array(READ_BYTES), { min: READ_BYTES });
      ended = value === undefined || value.length < READ_BYTES;
      text += decoder.decode(value, { stream: !ended });
      if (text.length > MAX_MESSAGE_LENGTH) {
        await reader.cancel();
        return null;
      }
    }
    return JSON.parse(prepare(text));
  } catch {
    return null;
  }
}
