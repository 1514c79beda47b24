import type { TokenLimit } from './sampling.ts';

/**
 * All errors that a caller can see: one table, one class, one envelope.
 * The form is OpenAI's: `{"error":{"message","type","param","code"}}`, all four keys always present.
 */

interface ErrorRow {
  readonly status: number;
  readonly type: string;
}

const invalid = (status: number): ErrorRow => ({ status, type: 'invalid_request_error' });
const server = (status: number): ErrorRow => ({ status, type: 'server_error' });

/** Error code → HTTP status and OpenAI error type. */
export const ERROR_TABLE = {
  invalid_json: invalid(400),
  invalid_type: invalid(400),
  invalid_value: invalid(400),
  missing_required_parameter: invalid(400),
  integer_above_max_value: invalid(400),
  integer_below_min_value: invalid(400),
  decimal_above_max_value: invalid(400),
  decimal_below_min_value: invalid(400),
  array_above_max_length: invalid(400),
  array_below_min_length: invalid(400),
  empty_array: invalid(400),
  string_above_max_length: invalid(400),
  empty_string: invalid(400),
  unsupported_parameter: invalid(400),
  conflicting_parameters: invalid(400),
  invalid_grammar: invalid(400),
  invalid_json_schema: invalid(400),
  context_length_exceeded: invalid(400),
  missing_api_key: invalid(401),
  invalid_api_key: invalid(401),
  address_not_allowed: { status: 403, type: 'permission_error' },
  insufficient_scope: { status: 403, type: 'permission_error' },
  tenant_suspended: { status: 403, type: 'permission_error' },
  model_not_found: invalid(404),
  unknown_url: invalid(404),
  not_found: invalid(404),
  method_not_supported: invalid(405),
  request_timeout: invalid(408),
  conflict: invalid(409),
  request_too_large: invalid(413),
  headers_too_large: invalid(431),
  unsupported_media_type: invalid(415),
  unsupported_endpoint: invalid(415),
  rate_limit_exceeded: { status: 429, type: 'requests' },
  tokens_limit_exceeded: { status: 429, type: 'tokens' },
  insufficient_quota: { status: 429, type: 'insufficient_quota' },
  internal_error: server(500),
  upstream_error: server(502),
  /** Between origin and Worker only: their versions differ too much. The caller gets `upstream_error`. */
  protocol_mismatch: server(502),
  server_is_overloaded: server(503),
  model_loading: server(503),
  model_unavailable: server(503),
  upstream_timeout: server(504),
} as const satisfies Record<string, ErrorRow>;

export type ErrorCode = keyof typeof ERROR_TABLE;

/** The body of an error response, and the data of a stream's error event. */
export interface ErrorEnvelope {
  readonly error: {
    readonly message: string;
    readonly type: string;
    readonly param: string | null;
    readonly code: string;
  };
}

interface ApiErrorOptions {
  /** The invalid request field, for example `stop[2]`. */
  readonly param?: string | null;
  /** Additional response headers, for example `retry-after`, `allow`, `www-authenticate`. */
  readonly headers?: Readonly<Record<string, string>>;
  /** The code that the caller sees, if a model server has a more exact one of its own. */
  readonly shownCode?: string;
}

/** Returns a count with its noun: `1 prompt`, `2 prompts`. */
export const counted = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? '' : 's'}`;

/** Returns the headers for the time to wait: HTTP's whole seconds, and milliseconds. */
export const retryAfter = (ms: number) => ({
  'retry-after': String(Math.max(1, Math.ceil(ms / 1000))),
  'retry-after-ms': String(Math.max(1, Math.ceil(ms))),
});

/** An error that the caller sees. Every other thrown value becomes `internal_error` without its message. */
export class ApiError extends Error {
  readonly code: ErrorCode;
  readonly param: string | null;
  readonly headers: Readonly<Record<string, string>>;
  readonly #shownCode: string | null;

  constructor(code: ErrorCode, message: string, options: ApiErrorOptions = {}) {
    super(message);
    this.name = 'ApiError';
    this.code = code;
    this.param = options.param ?? null;
    this.headers = options.headers ?? {};
    this.#shownCode = options.shownCode ?? null;
  }

  get status(): number {
    return ERROR_TABLE[this.code].status;
  }

  /** Returns the same error about a field that the caller knows by another name. */
  renamed(param: string, message: string): ApiError {
    const { headers } = this;
    const shown = this.#shownCode === null ? {} : { shownCode: this.#shownCode };
    return new ApiError(this.code, message, { param, headers, ...shown });
  }

  envelope(): ErrorEnvelope {
    return {
      error: {
        message: this.message,
        type: ERROR_TABLE[this.code].type,
        param: this.param,
        // Token limits have their own row because their type differs. Callers see one code for both.
        code: this.#shownCode ?? (this.code === 'tokens_limit_exceeded' ? 'rate_limit_exceeded' : this.code),
      },
    };
  }
}

export function isErrorCode(code: string): code is ErrorCode {
  return Object.hasOwn(ERROR_TABLE, code);
}

/** Returns the error named by a terminal event or an origin; an unknown code becomes `upstream_error`. */
export function errorFromWire({ code, message, param }: WireError): ApiError {
  return new ApiError(isErrorCode(code) ? code : 'upstream_error', message, { param });
}

interface WireError {
  readonly code: string;
  readonly message: string;
  readonly param: string | null;
}

/** Returns the error that the caller sees: an ApiError unchanged, every other value without its message. */
export function toApiError(thrown: unknown): ApiError {
  return thrown instanceof ApiError
    ? thrown
    : new ApiError('internal_error', 'The server had an error while processing your request.');
}

/** Tokens that must fit after the prompt: at least one if the completion runs to the end of the context. */
export const requiredTokens = (maxTokens: TokenLimit): number => (maxTokens === 'end' ? 1 : maxTokens);

/**
 * Returns the error of a prompt that does not fit. Clients search for the words "maximum context length is X
 * tokens". They cut prompts by the numbers, so a prompt that was not counted to its end must be `at-least`.
 * @param param the prompt's name in the error
 */
export function contextExceeded(
  contextLength: number,
  promptTokens: number,
  maxTokens: TokenLimit,
  param: string,
  count: 'exact' | 'at-least' = 'exact',
): ApiError {
  const completion = requiredTokens(maxTokens);
  const [least, advice] =
    count === 'exact' ? ['', ''] : ['at least ', ' POST /tokenize counts the tokens of a text.'];
  return new ApiError(
    'context_length_exceeded',
    `This model's maximum context length is ${contextLength} tokens, however you requested ` +
      `${least}${promptTokens + completion} tokens (${least}${promptTokens} in your prompt; ${completion} for the completion). ` +
      `Please reduce your prompt or the completion length.${advice}`,
    { param },
  );
}
