import { ERROR_TABLE, type ErrorCode, isErrorCode } from '../../shared/errors.ts';

/** Which errors a request may meet, by what is done for it; 404 and 405 of the router are no operation's. */

type Codes = readonly ErrorCode[];

export const ANYWHERE: Codes = ['internal_error'];

/** Finding out who calls, and in which dialect. */
export const CALLER: Codes = [
  ...ANYWHERE,
  'missing_api_key',
  'invalid_api_key',
  'insufficient_scope',
  'tenant_suspended',
  'rate_limit_exceeded',
  'server_is_overloaded',
  'invalid_value',
];

/** Asking what is served. */
export const MODELS: Codes = [...CALLER, 'model_loading', 'upstream_error', 'upstream_timeout'];

export const ONE_MODEL: Codes = [...MODELS, 'model_not_found'];

/** Asking a model's tokenizer, which not every server shows. */
export const TOKENIZER: Codes = [...ONE_MODEL, 'model_unavailable', 'unsupported_endpoint'];

/** Reading a JSON body. */
export const BODY: Codes = [
  'unsupported_media_type',
  'request_too_large',
  'request_timeout',
  'invalid_json',
  'invalid_type',
  'missing_required_parameter',
];

const NOT_OF_COMPLETIONS: readonly string[] = [
  'unknown_url',
  'method_not_supported',
  'not_found',
  'headers_too_large',
];

export const COMPLETION: Codes = Object.keys(ERROR_TABLE)
  .filter(isErrorCode)
  .filter((code) => !NOT_OF_COMPLETIONS.includes(code));
