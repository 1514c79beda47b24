const TRACEPARENT = /^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;

/**
 * The W3C traceparent of a request: the caller's as it is, or a new, unsampled one. It goes on to the upstream, so that
 * one id finds a request in every log.
 */
export function traceparentOf(request: Request, randomHex: (bytes: number) => string): string {
  const given = request.headers.get('traceparent')?.trim() ?? '';
  return TRACEPARENT.test(given) ? given : `00-${randomHex(16)}-${randomHex(8)}-00`;
}
