import type { After } from '../timers/request-timers.ts';
import { withTimeLimit } from '../timers/time-limit.ts';
import { unreachable } from './upstream-errors.ts';

/** What carries requests to an upstream: the platform's `fetch`, or that of a binding. */
export type Carrier = (url: string, init: RequestInit) => Promise<Response>;

export interface Asking {
  readonly carrier: Carrier;
  /** Ends the exchange, the reading of the answer included. */
  readonly signal: AbortSignal;
  readonly after: After;
  /** Milliseconds until the upstream must have answered with a status. */
  readonly acceptTimeoutMs: number;
}

/** An upstream's answer, its body still to be read. @throws ApiError 502 without a connection, 504 when it is late */
export function ask(
  url: string,
  init: Omit<RequestInit, 'signal'>,
  { carrier, signal, after, acceptTimeoutMs }: Asking,
): Promise<Response> {
  return withTimeLimit(
    { signal, after, ms: acceptTimeoutMs },
    // A prompt goes where the operator has said, and nowhere else.
    (limited) => carrier(url, { ...init, redirect: 'manual', signal: limited }),
    (_, late) => unreachable(late ? 'timeout' : 'connection'),
  );
}
