import type { Options } from 'minisearch';

/** One place that can be found. */
export interface Found {
  /** Its address. */
  readonly id: string;
  readonly title: string;
  /** Where it is: the guide's title, or the operation's method and path. */
  readonly place: string;
  /** Names of the fields and parameters of an operation. */
  readonly names: string;
  readonly text: string;
}

/** The same for the index that the build makes and for the page that loads it. */
export const SEARCH_OPTIONS: Options<Found> = {
  fields: ['title', 'place', 'names', 'text'],
  storeFields: ['title', 'place'],
  // Names such as max_tokens, /v1/completions and x-dialect are found whole and by their parts.
  tokenize: (text) => [
    ...new Set(
      [...text.split(/[\s,.;:()[\]{}"'`|]+/), ...text.split(/[^\p{L}\p{N}]+/u)].filter((word) => word !== ''),
    ),
  ],
  searchOptions: { prefix: true, fuzzy: 0.15, boost: { title: 4, place: 2, names: 4 }, combineWith: 'AND' },
};
