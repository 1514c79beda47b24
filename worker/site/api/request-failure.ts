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
  | 'server-error'
  | 'offline'
  | 'unreachable'
  | 'cut-stream';

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

type FailureDetails = Pick<RequestFailure, 'status' | 'param' | 'retryAfterMs' | 'requestId'>;

const BY_CODE: Readonly<Record<string, FailureKind>> = {
  missing_api_key: 'no-key',
  insufficient_quota: 'quota-exhausted',
  model_loading: 'model-loading',
  unavailable_error: 'model-loading',
  server_is_overloaded: 'overloaded',
  internal_error: 'server-error',
};

/** Reads the type too, because some dialects send the HTTP status as the code. */
function kindOf(status: number | null, code: string | number, type: string): FailureKind {
  const known = BY_CODE[code] ?? BY_CODE[type];
  if (known) return known;
  if (status === 401 || status === 403) return 'key-refused';
  if (status === 429) return 'rate-limited';
  if (status === null || (status >= 502 && status <= 504)) return 'origin-down';
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
export const streamFailure = (error: ErrorEnvelope['error'], requestId: string | null): RequestFailure =>
  new RequestFailure(kindOf(null, error.code, error.type), error.message, { param: error.param, requestId });
