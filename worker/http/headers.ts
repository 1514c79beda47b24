import { REPLAYED_HEADER } from '../replay/idempotent.ts';
import { REQUEST_ID_HEADER } from './responses.ts';

/** Headers of ours that callers may read: in the OpenAPI document, and by pages from elsewhere. */

export type Described = Readonly<Record<string, string>>;

/** On every answer. */
export const EVERY_ANSWER: Described = {
  [REQUEST_ID_HEADER]: "Finds the request in the logs: the caller's own id, or a new one.",
  'server-timing': 'Where the time went, in milliseconds.',
};

/** On answers that say whether and when to ask again. */
export const RETRYING: Described = {
  'retry-after': 'Seconds to wait.',
  'retry-after-ms': 'Milliseconds to wait.',
  'x-should-retry': 'Whether the same request may do better later: `true` or `false`.',
};

/** On answers to callers with limits per minute. */
export const LIMITS: Described = Object.fromEntries(
  ['requests', 'tokens'].flatMap((unit) => [
    [`x-ratelimit-limit-${unit}`, `Most ${unit} per minute.`],
    [`x-ratelimit-remaining-${unit}`, `What is left of the ${unit}.`],
    [`x-ratelimit-reset-${unit}`, `Time until all of the ${unit} are there again, such as \`1m30.5s\`.`],
  ]),
);

/** On the first answer, given again. */
export const REPLAYED: Described = {
  [REPLAYED_HEADER]: '`true`: the answer that an earlier request with the same idempotency key got.',
};

/** On answers to those who have not said who they are. */
export const CHALLENGED: Described = { 'www-authenticate': 'How to say who you are: `Bearer`.' };
