import type MiniSearch from 'minisearch';
import type { Options } from 'minisearch';

/** One place that can be found. */
export interface Found {
  /** Its address. */
  readonly id: string;
  readonly title: string;
  /** Where it is: the guide's title, or the operation's method and path. */
  readonly place: string;
  /** Names of the fields and parameters of an operation; '' = a section of a guide. */
  readonly names: string;
  readonly text: string;
}

export interface FoundPlace extends Pick<Found, 'id' | 'title' | 'place'> {
  /** The sentence of its text that has most of the words, in parts; every second part is one of the words. */
  readonly snippet: readonly string[];
}

/** Words of questions that say nothing about their subject. */
const NOISE = new Set(
  'a an and are as be by can do does for from give how i if in into is it its me my of on or own per put should that the this to use what when where which who why will with without you your'.split(
    ' ',
  ),
);

const stemOf = (word: string): string =>
  word.replace(word.length > 4 ? /(?:ing|ed|es|s|e)$/ : /(?<=^...)s$/, '');

/** The same for the index that the build makes and for the page that loads it. */
export const SEARCH_OPTIONS: Options<Found> = {
  fields: ['title', 'place', 'names', 'text'],
  storeFields: ['title', 'place', 'names', 'text'],
  // Names such as max_tokens, /v1/completions and x-dialect are found whole and by their parts.
  tokenize: (text) => [
    ...new Set(
      [...text.split(/[\s,.;:()[\]{}"'`|?]+/), ...text.split(/[^\p{L}\p{N}]+/u)].filter(
        (word) => word !== '',
      ),
    ),
  ],
  processTerm: (word) => {
    const lower = word.toLowerCase();
    return NOISE.has(lower) ? null : stemOf(lower);
  },
};

const isRecord = (id: string): boolean => id.includes('/guides/decisions');

/** Returns the matching places, best first, despite typing errors. Records come last. */
export function findPlaces(index: MiniSearch<Found>, query: string): FoundPlace[] {
  // Who writes a path or the name of a field looks for an operation; other questions are answered by guides.
  const namesField = /[_/]/.test(query);
  const results = index.search(query, {
    prefix: (term) => term.length > 2,
    fuzzy: (term) => (term.length > 5 ? 0.2 : term.length > 3 ? 1 : false),
    boost: { title: 2.5, place: 2, names: namesField ? 4 : 0.5 },
    // Sections are long and short, and a long one is as good an answer.
    bm25: { k: 1.2, b: 0, d: 0.5 },
    boostDocument: (_id, _term, stored) => {
      if (!stored?.names) return 1;
      if (!namesField) return 0.3;
      return String(stored.place).endsWith(` ${query.trim()}`) ? 4 : 1;
    },
  });
  const records = Map.groupBy(results, ({ id }) => isRecord(id));
  return [...(records.get(false) ?? []), ...(records.get(true) ?? [])].map(
    ({ id, title, place, text, terms }) => ({ id, title, place, snippet: snippetOf(text, terms) }),
  );
}

const MAX_SNIPPET = 140;

function snippetOf(text: string, stems: readonly string[]): string[] {
  const words = new RegExp(
    `((?<![\\p{L}\\p{N}])(?:${stems.filter((stem) => /^[\p{L}\p{N}]+$/u.test(stem)).join('|')})[\\p{L}\\p{N}]*)`,
    'giu',
  );
  const hits = (sentence: string) => new Set(sentence.toLowerCase().match(words)).size;
  const sentences = text.split(/(?<=[.!?]) /);
  const best = sentences.reduce(
    (first, second) => (hits(second) > hits(first) ? second : first),
    sentences[0] ?? '',
  );
  return best.slice(0, MAX_SNIPPET).split(words);
}
