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
  'a an and are be by can do does for from give how i in into is it its me my of on or own per put that the this to use what when where which who why will with without'.split(
    ' ',
  ),
);

/** What the guides call the things of a question. */
const SYNONYMS: Readonly<Record<string, readonly string[]>> = {
  huggingface: ['hugging', 'fetch', 'models'],
  colleague: ['tenants', 'api'],
  vllm: ['engines'],
  environment: ['configuration', 'variable'],
  keyboard: ['keys', 'page'],
  autocomplete: ['editors'],
  retry: ['repeating'],
  fast: ['performance', 'throughput'],
  several: ['many'],
  minute: ['limits'],
  use: ['usage'],
  crashes: ['fails'],
  docker: ['deploying', 'kubernetes'],
  quantize: ['precisions'],
};

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

/** Part of a place's rank that all places of its guide give: a guide that is about the question has many of them. */
const GUIDE_SHARE = 0.6;

/** Returns the matching places, best first: those that have most words of the query, in headings before texts. */
export function findPlaces(index: MiniSearch<Found>, query: string): FoundPlace[] {
  // Who writes a path or the name of a field looks for an operation; other questions are answered by guides.
  const processTerm = (word: string) =>
    [word, ...(SYNONYMS[word.toLowerCase()] ?? [])].flatMap((one) => SEARCH_OPTIONS.processTerm!(one) || []);
  const namesField = /[_/]/.test(query);
  const found = index.search(query, {
    processTerm,
    prefix: (term) => term.length > 2,
    fuzzy: (term) => (term.length > 5 ? 0.15 : false),
    boost: { title: 4, place: 2, names: namesField ? 4 : 0.5 },
    boostDocument: (id, _term, stored) => {
      if (id.includes('/decisions/')) return 0.3;
      if (!stored?.names) return 1;
      return !namesField ? 0.3 : String(stored.place).endsWith(` ${query.trim()}`) ? 3 : 1;
    },
  });
  const ranked = found.map((one) => ({ one, rank: one.score * one.queryTerms.length }));
  const guideOf = (id: string) => id.replace(/#.*/, '');
  const sums = new Map<string, number>();
  for (const { one, rank } of ranked) sums.set(guideOf(one.id), (sums.get(guideOf(one.id)) ?? 0) + rank);
  const most = Math.max(...sums.values());
  return ranked
    .map(({ one, rank }) => ({ one, rank: rank * (1 + (GUIDE_SHARE * sums.get(guideOf(one.id))!) / most) }))
    .sort((a, b) => b.rank - a.rank)
    .map(({ one: { id, title, place, text, terms } }) => ({
      id,
      title,
      place,
      snippet: snippetOf(text, terms),
    }));
}

const MAX_SNIPPET = 140;

function snippetOf(text: string, stems: readonly string[]): string[] {
  const words = new RegExp(
    `((?<![\\p{L}\\p{N}])(?:${stems.filter((stem) => /^[\p{L}\p{N}]+$/u.test(stem)).join('|')})[\\p{L}\\p{N}]*)`,
    'giu',
  );
  const hits = (sentence: string) => new Set(sentence.toLowerCase().match(words)).size;
  const sentences = text.split(/(?<=[.!?]) /);
  const best = sentences.reduce((one, other) => (hits(other) > hits(one) ? other : one), sentences[0] ?? '');
  return best.slice(0, MAX_SNIPPET).split(words);
}
