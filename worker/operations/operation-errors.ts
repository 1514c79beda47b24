import { ERROR_TABLE, type ErrorCode, isErrorCode } from '@continuo/shared/errors.ts';

/** The errors that several operations share, for the API documents. */

type Codes = readonly ErrorCode[];

/** Errors of every operation. 404 and 405 of the router belong to no operation. */
export const ANY: Codes = ['internal_error'];

/** Errors of authentication. */
export const AUTHENTICATED: Codes = [
  ...ANY,
  'missing_api_key',
  'invalid_api_key',
  'address_not_allowed',
  'insufficient_scope',
  'rate_limit_exceeded',
  'server_is_overloaded',
];

/** Errors of a tenant's key and of the dialect header. */
export const CALLER: Codes = [...AUTHENTICATED, 'tenant_suspended', 'invalid_value'];

/** Errors of reading a JSON body. */
export const BODY: Codes = [
  'unsupported_media_type',
  'request_too_large',
  'request_timeout',
  'invalid_json',
  'invalid_type',
  'missing_required_parameter',
];

/** Errors of listing the served models. */
export const MODELS: Codes = ['model_loading', 'upstream_error', 'upstream_timeout'];

export const ONE_MODEL: Codes = [...MODELS, 'model_not_found'];

/** Errors of a model's tokenizer, which not every upstream offers. */
export const TOKENIZER: Codes = [...ONE_MODEL, 'model_unavailable', 'unsupported_endpoint'];

const NOT_FOR_COMPLETIONS: readonly string[] = [
  'unknown_url',
  'method_not_supported',
  'not_found',
  'headers_too_large',
  'protocol_mismatch',
];

export const COMPLETION: Codes = Object.keys(ERROR_TABLE)
  .filter(isErrorCode)
  .filter((code) => !NOT_FOR_COMPLETIONS.includes(code));
