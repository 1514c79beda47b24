declare module 'virtual:request-fields' {
  import type { RequestField } from './request-field.ts';

  /** Fields of POST /v1/completions by name, generated from the zod schemas at build time. */
  export const REQUEST_FIELDS: Readonly<Record<string, RequestField>>;

  /** Names of the dialects, from the same schemas. */
  export const DIALECT_NAMES: readonly string[];

  /** Maximum of `logprobs` by dialect; '' = the tenant's own. */
  export const MAX_LOGPROBS: Readonly<Record<string, number>>;
}
