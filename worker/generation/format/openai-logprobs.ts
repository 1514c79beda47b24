import type { TokenLogprob, TopLogprob } from '@continuo/shared/generation.ts';
import type { ResponseOptions, RowMember } from '../../dialects/parsed-completion.ts';
import { shownLogprob } from './float32.ts';
import { CodePointCounter } from './text-offsets.ts';
import { tokenText } from './token-text.ts';

/** The `logprobs` object of legacy completions: arrays of equal length, one entry per token. */
export interface Logprobs {
  readonly tokens: string[];
  readonly tokenLogprobs: (number | null)[];
  /** By name, best first. Maps, because objects reorder keys that look like numbers. */
  readonly top: (ReadonlyMap<string, TopLogprob> | null)[];
  /** Write the ids of `top`, too. */
  readonly tokenIds: boolean;
  /** Code points from the start of the choice's text. */
  readonly textOffset: number[];
  /** The members with rows, in base64; null = no row. */
  readonly rows: readonly (readonly [RowMember, (string | null)[]])[];
}

export interface LogprobsOptions extends Pick<ResponseOptions, 'tokensAsIds' | 'tokenIds' | 'rowMembers'> {
  /** Number of top logprobs per token. The token itself is added if it is not among them. */
  readonly topLogprobs: number;
}

/**
 * Formats the tokens of one choice, in order. The offset of a token is the position of the character that its
 * first byte belongs to. So the tokens of one character share an offset, and hidden tokens take no space.
 */
export class LogprobsFormatter {
  readonly #options: LogprobsOptions;
  readonly #position: CodePointCounter;
  /** By bytes. The same tokens come again and again, and decoding other bytes than ASCII is slow. */
  readonly #names = new Map<string, string>();

  /** @param start code points of the text before the first token */
  constructor(options: LogprobsOptions, start = 0) {
    this.#options = options;
    this.#position = new CodePointCounter(start);
  }

  format(tokens: readonly TokenLogprob[]): Logprobs {
    return {
      tokens: tokens.map((token) => this.#name(token.id, token.bytes)),
      tokenLogprobs: tokens.map(({ logprob }) => (logprob === null ? null : shownLogprob(logprob))),
      top: tokens.map((token) => this.#top(token)),
      tokenIds: this.#options.tokenIds,
      textOffset: tokens.map((token) => this.#offset(token)),
      rows: this.#options.rowMembers.map((member) => [member, rowsOf(tokens, member)]),
    };
  }

  #name(id: number, bytes: string): string {
    if (this.#options.tokensAsIds) return nameOfId(id);
    const remembered = this.#names.get(bytes);
    if (remembered !== undefined) return remembered;
    const name = tokenText(bytes);
    this.#names.set(bytes, name);
    return name;
  }

  /** If several ids have one text, it names the token itself, else the best; `token_id:N` the others. */
  #top(token: TokenLogprob): ReadonlyMap<string, TopLogprob> | null {
    if (token.logprob === null) return null;
    const ownText = this.#name(token.id, token.bytes);
    const top = new Map<string, TopLogprob>();
    for (const entry of this.#bestAndOwn(token)) {
      const [id, bytes] = entry;
      const text = this.#name(id, bytes);
      const holder = text === ownText ? token.id : (top.get(text)?.[0] ?? id);
      const name = id === holder ? text : nameOfId(id);
      // Upstreams without ids may list one name twice.
      if (!top.has(name)) top.set(name, entry);
    }
    return top;
  }

  #bestAndOwn(token: TokenLogprob): readonly TopLogprob[] {
    const best = bestOf(token, this.#options.topLogprobs);
    return includes(best, token) ? best : [...best, [token.id, token.bytes, token.logprob ?? 0]];
  }

  #offset({ bytes, hidden }: TokenLogprob): number {
    if (hidden || bytes === '') return this.#position.positionOf(undefined);
    const offset = this.#position.positionOf(bytes.charCodeAt(0));
    for (let index = 0; index < bytes.length; index += 1) this.#position.push(bytes.charCodeAt(index));
    return offset;
  }
}

const nameOfId = (id: number): string => `token_id:${id}`;

const bestOf = ({ topLogprobs }: TokenLogprob, count: number): readonly TopLogprob[] =>
  (topLogprobs ?? []).slice(0, count);

const includes = (best: readonly TopLogprob[], token: TokenLogprob): boolean =>
  best.some(([id]) => id === token.id);

/** Returns a member of the tokens' rows; null for tokens without a row. */
export const rowsOf = (tokens: readonly TokenLogprob[], member: RowMember): (string | null)[] =>
  tokens.map(({ row }) => (member === 'rows' ? row?.logprobs : row?.ids) ?? null);

export function appendLogprobs(whole: Logprobs, next: Logprobs): void {
  for (const token of next.tokens) whole.tokens.push(token);
  for (const logprob of next.tokenLogprobs) whole.tokenLogprobs.push(logprob);
  for (const top of next.top) whole.top.push(top);
  for (const offset of next.textOffset) whole.textOffset.push(offset);
  next.rows.forEach(([, rows], index) => {
    for (const row of rows) whole.rows[index]?.[1].push(row);
  });
}

type Shown = (entry: TopLogprob) => number;

const mapJson = (map: ReadonlyMap<string, TopLogprob>, shown: Shown): string =>
  `{${Array.from(map, ([name, entry]) => `${JSON.stringify(name)}:${shown(entry)}`).join(',')}}`;

const mapsJson = (maps: Logprobs['top'], shown: Shown): string =>
  `[${maps.map((map) => (map === null ? 'null' : mapJson(map, shown))).join(',')}]`;

/** Returns JSON text that keeps the order of the top logprobs. */
export function logprobsJson(logprobs: Logprobs | null): string {
  if (logprobs === null) return 'null';
  const { tokens, tokenLogprobs, top, tokenIds, textOffset } = logprobs;
  const rows = logprobs.rows.map(([name, values]) => `"${name}":${JSON.stringify(values)},`).join('');
  const values = mapsJson(top, ([, , logprob]) => shownLogprob(logprob));
  const ids = tokenIds ? `"top_token_ids":${mapsJson(top, ([id]) => id)},` : '';
  return (
    `{"tokens":${JSON.stringify(tokens)},"token_logprobs":${JSON.stringify(tokenLogprobs)},` +
    `"top_logprobs":${values},${ids}${rows}"text_offset":${JSON.stringify(textOffset)}}`
  );
}

/**
 * Returns `prompt_logprobs` in vLLM's layout as JSON text: for each prompt token a map from id to logprob,
 * null for the first token. vLLM's clients take the first entry for the prompt's own token. Objects would
 * reorder the ids.
 */
export function promptLogprobsJson(tokens: readonly TokenLogprob[], topLogprobs: number): string {
  const positions = tokens.map((token) => {
    const { id, bytes, logprob } = token;
    if (logprob === null) return 'null';
    const best = bestOf(token, topLogprobs);
    const alternatives = best.flatMap((top, index) => (top[0] === id ? [] : [entryJson(top, index + 1)]));
    return `{${[entryJson([id, bytes, logprob], rankOf(token)), ...alternatives].join(',')}}`;
  });
  return `[${positions.join(',')}]`;
}

/** Of an origin or a server that does not tell the rank, the best one that the token can have. */
function rankOf({ id, topLogprobs, rank }: TokenLogprob): number {
  const place = (topLogprobs ?? []).findIndex(([candidate]) => candidate === id);
  return place >= 0 ? place + 1 : (rank ?? (topLogprobs ?? []).length + 1);
}

const entryJson = ([id, bytes, logprob]: TopLogprob, rank: number): string =>
  `"${id}":{"logprob":${shownLogprob(logprob)},"rank":${rank},"decoded_token":${JSON.stringify(tokenText(bytes))}}`;
