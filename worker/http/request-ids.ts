import { REQUEST_ID_HEADER } from './headers.ts';

/** Returns the caller's own request id if it is safe to log and to send on; otherwise null. */
export function incomingRequestId(request: Request): string | null {
  const id = request.headers.get(REQUEST_ID_HEADER);
  return id !== null && /^[\w.:-]{1,128}$/.test(id) ? id : null;
}

const TRACEPARENT = /^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;

/**
 * Returns the caller's W3C traceparent unchanged, or a new, unsampled one. The Worker sends it to the upstream, so one id
 * finds a request in every log.
 */
export function traceparentOf(request: Request, randomHex: (bytes: number) => string): string {
  const given = request.headers.get('traceparent')?.trim() ?? '';
  return TRACEPARENT.test(given) ? given : `00-${randomHex(16)}-${randomHex(8)}-00`;
}
