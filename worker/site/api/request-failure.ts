import type { ErrorEnvelope } from '@continuo/shared/errors.ts';

/** Kinds of failures that the page explains differently. */
export type FailureKind =
  | 'no-key'
  | 'key-refused'
  | 'rate-limited'
  | 'quota-exhausted'
  | 'model-loading'
  | 'invalid-request'
  | 'overloaded'
  | 'origin-down'
  | 'timed-out'
  | 'server-error'
  | 'offline'
  | 'unreachable'
  | 'cut-stream'
  /** The model of this browser is not open, or has ended. */
  | 'not-open';

/** A request that failed, with what the server said about it. */
export class RequestFailure extends Error {
  readonly kind: FailureKind;
  /** HTTP status; null if there was no response or the stream had started. */
  readonly status: number | null;
  /** The invalid field, such as `stop[2]`. */
  readonly param: string | null;
  /** Milliseconds after which the server expects a retry to succeed; null = unknown. */
  readonly retryAfterMs: number | null;
  readonly requestId: string | null;

  constructor(kind: FailureKind, message: string, details: Partial<FailureDetails> = {}) {
    super(message);
    this.kind = kind;
    this.status = details.status ?? null;
    this.param = details.param ?? null;
    this.retryAfterMs = details.retryAfterMs ?? null;
    this.requestId = details.requestId ?? null;
  }
}

/** Returns why a request failed, for people. What a server says about a missing key is for programs. */
export const reasonOf = ({ kind, message }: Pick<RequestFailure, 'kind' | 'message'>): string =>
  kind === 'no-key' ? '' : message;

/** Returns what was thrown as a failure. @param kind of what is none */
export const failureFrom = (thrown: unknown, kind: FailureKind = 'unreachable'): RequestFailure =>
  thrown instanceof RequestFailure ? thrown : new RequestFailure(kind, String(thrown));

type FailureDetails = Pick<RequestFailure, 'status' | 'param' | 'retryAfterMs' | 'requestId'>;

/** By the code of an error, or else by its type. An event of a stream has no status. */
const KINDS: Readonly<Record<string, FailureKind>> = {
  missing_api_key: 'no-key',
  invalid_api_key: 'key-refused',
  permission_error: 'key-refused',
  insufficient_quota: 'quota-exhausted',
  requests: 'rate-limited',
  tokens: 'rate-limited',
  model_loading: 'model-loading',
  unavailable_error: 'model-loading',
  server_is_overloaded: 'overloaded',
  internal_error: 'server-error',
  request_timeout: 'timed-out',
  upstream_timeout: 'timed-out',
};

/**
 * @param status of the response; in a stream, that which some dialects send as the code; null if neither is
 *   known
 */
function kindOf(status: number | null, code: string | number, type: string): FailureKind {
  const kind = KINDS[code] ?? KINDS[type];
  if (kind) return kind;
  if (status === 401 || status === 403) return 'key-refused';
  if (status === 429) return 'rate-limited';
  if (status === null) return type === 'invalid_request_error' ? 'invalid-request' : 'origin-down';
  if (status === 504) return 'timed-out';
  if (status === 502 || status === 503) return 'origin-down';
  return status >= 500 ? 'server-error' : 'invalid-request';
}

/** Returns the server's error object; null if the value is none. */
export function errorOf(value: unknown): ErrorEnvelope['error'] | null {
  if (typeof value !== 'object' || value === null || !('error' in value)) return null;
  const { error } = value;
  return typeof error === 'object' && error !== null && 'message' in error
    ? (error as ErrorEnvelope['error'])
    : null;
}

/** Returns milliseconds from `retry-after-ms` or `retry-after`; null if both are absent. */
function retryAfterOf(headers: Headers): number | null {
  const read = (name: string, unit: number) => {
    const value = Number.parseFloat(headers.get(name) ?? '');
    return Number.isFinite(value) ? value * unit : null;
  };
  return read('retry-after-ms', 1) ?? read('retry-after', 1000);
}

/** Reads the failure from an error response. */
export async function failureOf(response: Response): Promise<RequestFailure> {
  const { status, headers } = response;
  const error = errorOf(await response.json().catch(() => null));
  return new RequestFailure(
    kindOf(status, error?.code ?? '', error?.type ?? ''),
    error?.message ?? `The server answered with status ${status}.`,
    {
      status,
      param: error?.param ?? null,
      retryAfterMs: retryAfterOf(headers),
      requestId: headers.get('x-request-id'),
    },
  );
}

/** Reads the failure from an error event of a stream. */
export function streamFailure(
  { code, type, message, param }: ErrorEnvelope['error'],
  requestId: string | null,
): RequestFailure {
  const status = Number(code) || null;
  return new RequestFailure(kindOf(status, code, type), message, { param, requestId });
}
