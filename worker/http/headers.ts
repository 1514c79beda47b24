import { IGNORED_KEYWORDS_HEADER } from '@continuo/shared/capabilities.ts';

/** Names and descriptions of the Worker's own HTTP headers, for OpenAPI and for CORS. */

export const REQUEST_ID_HEADER = 'x-request-id';
/** A plain request with this header runs once. If it is repeated, it gets the first response. */
export const IDEMPOTENCY_HEADER = 'idempotency-key';
export const REPLAYED_HEADER = 'idempotent-replayed';
/** `x-resumable: true` lets a streaming completion outlive its client's connection. */
export const RESUMABLE_HEADER = 'x-resumable';
export const LAST_EVENT_HEADER = 'last-event-id';

/** Header name → one-line description. */
export type HeaderDescriptions = Readonly<Record<string, string>>;

/** Headers of every response. */
export const COMMON_HEADERS: HeaderDescriptions = {
  [REQUEST_ID_HEADER]: "Id of the request in the logs: the caller's own id, or a generated one.",
  'server-timing': 'Duration of each processing step, in milliseconds.',
  date: 'Time of the response by the clock of the server.',
};

/** Headers of responses that clients may retry. */
export const RETRY_HEADERS: HeaderDescriptions = {
  'retry-after': 'Seconds to wait before the next attempt.',
  'retry-after-ms': 'Milliseconds to wait before the next attempt.',
  'x-should-retry': 'Whether retrying the same request can succeed: `true` or `false`.',
};

/** Headers of responses to callers with limits per minute. */
export const LIMIT_HEADERS: HeaderDescriptions = Object.fromEntries(
  ['requests', 'tokens'].flatMap((unit) => [
    [`x-ratelimit-limit-${unit}`, `Maximum number of ${unit} per minute.`],
    [`x-ratelimit-remaining-${unit}`, `Number of ${unit} that are left.`],
    [`x-ratelimit-reset-${unit}`, `Time until all ${unit} are available again, such as \`1m30.5s\`.`],
  ]),
);

/** Header of responses to bodies with fields that have no effect. */
export const IGNORED_FIELDS_HEADER = 'x-ignored-fields';
export const BODY_HEADERS: HeaderDescriptions = {
  [IGNORED_FIELDS_HEADER]: 'Fields of the body that are unknown and were ignored, percent-encoded.',
};

export const COMPLETION_HEADERS: HeaderDescriptions = {
  ...BODY_HEADERS,
  [IGNORED_KEYWORDS_HEADER]: 'Keywords of the JSON Schema that were ignored, percent-encoded.',
};

/** Header of a repeated response. */
export const REPLAY_HEADERS: HeaderDescriptions = {
  [REPLAYED_HEADER]: '`true` if this is the response to an earlier request with the same idempotency key.',
};

/** Header of responses to requests without a valid key. */
export const CHALLENGE_HEADERS: HeaderDescriptions = {
  'www-authenticate': 'Authentication scheme to use: `Bearer`.',
};
