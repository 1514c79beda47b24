import type { After } from '../request-timers.ts';
import { unreachable } from './origin-errors.ts';

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
export async function ask(
  url: string,
  init: Omit<RequestInit, 'signal'>,
  { carrier, signal, after, acceptTimeoutMs }: Asking,
): Promise<Response> {
  const timeout = new AbortController();
  const accepted = after(acceptTimeoutMs, () => timeout.abort());
  try {
    return await carrier(url, { ...init, signal: AbortSignal.any([signal, timeout.signal]) });
  } catch {
    throw unreachable(timeout.signal.aborted ? 'timeout' : 'connection');
  } finally {
    accepted();
  }
}
