import { ERROR_TABLE, type ErrorCode, isErrorCode } from '@continuo/shared/errors.ts';
import type * as z from 'zod';
import { type HeaderDescriptions, IDEMPOTENCY_HEADER } from '../http/headers.ts';

/** What the OpenAPI document says of an operation, and the errors that several operations share. */

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

/** Errors of listing the served models. */
export const MODELS: Codes = [...CALLER, 'model_loading', 'upstream_error', 'upstream_timeout'];

export const ONE_MODEL: Codes = [...MODELS, 'model_not_found'];

/** Errors of a model's tokenizer, which not every upstream offers. */
export const TOKENIZER: Codes = [...ONE_MODEL, 'model_unavailable', 'unsupported_endpoint'];

/** Errors of reading a JSON body. */
export const BODY: Codes = [
  'unsupported_media_type',
  'request_too_large',
  'request_timeout',
  'invalid_json',
  'invalid_type',
  'missing_required_parameter',
];

const NOT_FOR_COMPLETIONS: readonly string[] = [
  'unknown_url',
  'method_not_supported',
  'not_found',
  'headers_too_large',
  'protocol_mismatch',
];

/** Errors of files and batches. */
export const STORED: Codes = [...CALLER, 'not_found'];

export const COMPLETION: Codes = Object.keys(ERROR_TABLE)
  .filter(isErrorCode)
  .filter((code) => !NOT_FOR_COMPLETIONS.includes(code));

/** Groups of operations. */
export const TAGS = {
  Completions: 'Continue texts, plain or streamed.',
  Scoring: 'Probabilities of given texts.',
  Batches: 'Many requests in a file, run when there is room, and their files.',
  Models: 'The models that a key may use.',
  Tokenizer: 'Convert texts to tokens and back.',
  Account: 'Own usage, limits and keys.',
  Service: 'State and addresses of the endpoint.',
} as const;

/** A public operation as the OpenAPI document describes it. */
export interface DocumentedOperation {
  readonly id: string;
  readonly summary: string;
  readonly tag: keyof typeof TAGS;
  /** The operation needs no API key. */
  readonly isOpen?: true;
  readonly body?: { readonly name: string; readonly schema: z.ZodType; readonly examples: Examples };
  /** Fields of a multipart/form-data body, in place of `body`. */
  readonly form?: { readonly name: string; readonly schema: z.ZodType };
  /** Codes of the possible errors. */
  readonly errors: readonly ErrorCode[];
  /** Responses have `x-ratelimit-*` headers. */
  readonly limited?: boolean;
  /** Headers of a successful response, in addition to the common ones. */
  readonly answerHeaders?: HeaderDescriptions;
  /** Status of a successful response; absent = 200. */
  readonly status?: 201;
  /** Absent if all responses are streams. */
  readonly answer?: { readonly name: string; readonly schema: z.ZodType; readonly example: unknown };
  /** Name and schema of the stream events, if the response can be a stream. */
  readonly events?: { readonly name: string; readonly schema: z.ZodType };
  /** The response is a file of JSON Lines. */
  readonly file?: true;
  /** Query parameters; all are optional strings. */
  readonly query?: HeaderDescriptions;
  /** Header parameters, in addition to those of every operation; all are optional strings. */
  readonly headers?: HeaderDescriptions;
}

/** The header of requests that can be repeated. */
export const REPEATABLE: HeaderDescriptions = {
  [IDEMPOTENCY_HEADER]:
    'Runs a plain request once: repeated with the same key within one hour, it gets the first response.',
};

export type Examples = Readonly<Record<string, unknown>>;

/** Operations of one group, by method and path. */
export type OperationGroup = Readonly<Record<string, Omit<DocumentedOperation, 'tag'>>>;

export const tagged = (tag: DocumentedOperation['tag'], group: OperationGroup) =>
  Object.fromEntries(Object.entries(group).map(([route, operation]) => [route, { ...operation, tag }]));
