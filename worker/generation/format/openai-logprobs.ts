import type { TokenLogprob, TopLogprob } from '@continuo/shared/generation.ts';
import type { AnswerOptions, RowMember } from '../../dialects/completion-call.ts';
import { shownLogprob } from './float32.ts';
import { CodePointCounter } from './text-offsets.ts';
import { tokenText } from './token-text.ts';

/** The `logprobs` object of legacy completions: arrays of equal length, one entry per token. */
export interface Logprobs {
  readonly tokens: string[];
  readonly tokenLogprobs: (number | null)[];
  /** Best first. Maps, because objects reorder keys that look like numbers. */
  readonly topLogprobs: (ReadonlyMap<string, number> | null)[];
  /** The ids of the names in topLogprobs; null unless token ids are requested. */
  readonly topTokenIds: (ReadonlyMap<string, number> | null)[] | null;
  /** Code points from the start of the choice's text. */
  readonly textOffset: number[];
  /** The members with rows, in base64; null = no row. */
  readonly rows: readonly (readonly [RowMember, (string | null)[]])[];
}

export interface LogprobsOptions extends Pick<AnswerOptions, 'tokensAsIds' | 'tokenIds' | 'rowMembers'> {
  /** Number of top logprobs per token. The token itself is added if it is not among them. */
  readonly topLogprobs: number;
}

/**
 * Formats the tokens of one choice, in order. The offset of a token is the position of the character that its first
 * byte belongs to. So the tokens of one character share an offset, and hidden tokens take no space.
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
      topLogprobs: tokens.map((token) => this.#top(token)),
      topTokenIds: this.#options.tokenIds ? tokens.map((token) => this.#topIds(token)) : null,
      textOffset: tokens.map((token) => this.#offset(token)),
      rows: this.#options.rowMembers.map((member) => [member, rowsOf(tokens, member)]),
    };
  }

  #name(id: number, bytes: string): string {
    if (this.#options.tokensAsIds) return `token_id:${id}`;
    const known = this.#names.get(bytes);
    if (known !== undefined) return known;
    const name = tokenText(bytes);
    this.#names.set(bytes, name);
    return name;
  }

  /** If two ids have the same name, the higher value is kept. */
  #top(token: TokenLogprob): ReadonlyMap<string, number> | null {
    if (token.logprob === null) return null;
    const map = new Map<string, number>();
    for (const [id, bytes, logprob] of this.#bestAndOwn(token)) {
      const name = this.#name(id, bytes);
      const value = shownLogprob(logprob);
      map.set(name, Math.max(map.get(name) ?? value, value));
    }
    return map;
  }

  /** If two ids have the same name, the first one is kept. */
  #topIds(token: TokenLogprob): ReadonlyMap<string, number> | null {
    if (token.logprob === null) return null;
    const worstFirst = this.#bestAndOwn(token).toReversed();
    return new Map(worstFirst.map(([id, bytes]) => [this.#name(id, bytes), id]));
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

const bestOf = ({ topLogprobs }: TokenLogprob, count: number): readonly TopLogprob[] =>
  (topLogprobs ?? []).slice(0, count);

const includes = (best: readonly TopLogprob[], token: TokenLogprob): boolean =>
  best.some(([id]) => id === token.id);

/** Returns a member of the tokens' rows; null for tokens without a row. */
export const rowsOf = (tokens: readonly TokenLogprob[], member: RowMember): (string | null)[] =>
  tokens.map(({ row }) => (member === 'rows' ? row?.logprobs : row?.ids) ?? null);

/** Appends `next` to `whole`. */
export function appendLogprobs(whole: Logprobs, next: Logprobs): void {
  for (const token of next.tokens) whole.tokens.push(token);
  for (const logprob of next.tokenLogprobs) whole.tokenLogprobs.push(logprob);
  for (const top of next.topLogprobs) whole.topLogprobs.push(top);
  for (const ids of next.topTokenIds ?? []) whole.topTokenIds?.push(ids);
  for (const offset of next.textOffset) whole.textOffset.push(offset);
  next.rows.forEach(([, rows], index) => {
    for (const row of rows) whole.rows[index]?.[1].push(row);
  });
}

const mapJson = (map: ReadonlyMap<string, number>): string =>
  `{${Array.from(map, ([name, value]) => `${JSON.stringify(name)}:${value}`).join(',')}}`;

const mapsJson = (maps: Logprobs['topLogprobs']): string =>
  `[${maps.map((map) => (map === null ? 'null' : mapJson(map))).join(',')}]`;

/** Returns JSON text that keeps the order of the top logprobs. */
export function logprobsJson(logprobs: Logprobs | null): string {
  if (logprobs === null) return 'null';
  const { tokens, tokenLogprobs, topLogprobs, topTokenIds, textOffset } = logprobs;
  const rows = logprobs.rows.map(([name, values]) => `"${name}":${JSON.stringify(values)},`).join('');
  const ids = topTokenIds === null ? '' : `"top_token_ids":${mapsJson(topTokenIds)},`;
  return (
    `{"tokens":${JSON.stringify(tokens)},"token_logprobs":${JSON.stringify(tokenLogprobs)},` +
    `"top_logprobs":${mapsJson(topLogprobs)},${ids}${rows}"text_offset":${JSON.stringify(textOffset)}}`
  );
}

/**
 * Returns `prompt_logprobs` in vLLM's layout as JSON text: for each prompt token a map from id to logprob, null for the
 * first token. vLLM's clients take the first entry for the prompt's own token. Objects would reorder the ids.
 */
export function promptLogprobsJson(tokens: readonly TokenLogprob[], topLogprobs: number): string {
  const positions = tokens.map((token) => {
    const { id, bytes, logprob } = token;
    if (logprob === null) return 'null';
    const best = bestOf(token, topLogprobs);
    const others = best.flatMap((top, index) => (top[0] === id ? [] : [entryJson(top, index + 1)]));
    return `{${[entryJson([id, bytes, logprob], rankOf(token)), ...others].join(',')}}`;
  });
  return `[${positions.join(',')}]`;
}

/** Of an origin or a server that does not tell the rank, the best one that the token can have. */
function rankOf({ id, topLogprobs, rank }: TokenLogprob): number {
  const place = (topLogprobs ?? []).findIndex(([other]) => other === id);
  return place >= 0 ? place + 1 : (rank ?? (topLogprobs ?? []).length + 1);
}

const entryJson = ([id, bytes, logprob]: TopLogprob, rank: number): string =>
  `"${id}":{"logprob":${shownLogprob(logprob)},"rank":${rank},"decoded_token":${JSON.stringify(tokenText(bytes))}}`;
