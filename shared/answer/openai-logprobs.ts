import type { TokenLogprob } from '../generation.ts';
import { CodePointCounter } from './code-points.ts';
import { shownLogprob } from './float32.ts';
import { tokenText } from './token-text.ts';

/** The legacy layout: four arrays of one length, an entry per token. */
export interface Logprobs {
  readonly tokens: string[];
  readonly tokenLogprobs: (number | null)[];
  /** Best first. Maps, because objects reorder keys that look like numbers. */
  readonly topLogprobs: (ReadonlyMap<string, number> | null)[];
  /** Code points from the start of the choice's text. */
  readonly textOffset: number[];
}

export interface LogprobsOptions {
  /** Alternatives per token, besides the token itself. */
  readonly alternatives: number;
  /** Name tokens `token_id:N`: two ids may share one text. */
  readonly tokensAsIds: boolean;
}

/**
 * Formats the tokens of one choice, in order. A token's offset is the position of the character its first byte belongs
 * to, so that the tokens of one character share an offset; tokens hidden from the text take no room.
 */
export class LogprobsFormatter {
  readonly #options: LogprobsOptions;
  readonly #position: CodePointCounter;

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
      textOffset: tokens.map((token) => this.#offset(token)),
    };
  }

  #name(id: number, bytes: string): string {
    return this.#options.tokensAsIds ? `token_id:${id}` : tokenText(bytes);
  }

  /** The best N and the token itself. Of two ids with one name the better value stays, even against the token's own. */
  #top(token: TokenLogprob): ReadonlyMap<string, number> | null {
    if (token.logprob === null) return null;
    const best = (token.top ?? []).slice(0, this.#options.alternatives);
    const own = best.some(([id]) => id === token.id) ? [] : [[token.id, token.bytes, token.logprob] as const];
    const map = new Map<string, number>();
    for (const [id, bytes, logprob] of [...best, ...own]) {
      const name = this.#name(id, bytes);
      const value = shownLogprob(logprob);
      map.set(name, Math.max(map.get(name) ?? value, value));
    }
    return map;
  }

  #offset({ bytes, hidden }: TokenLogprob): number {
    if (hidden || bytes === '') return this.#position.positionOf(undefined);
    const offset = this.#position.positionOf(bytes.charCodeAt(0));
    for (let index = 0; index < bytes.length; index += 1) this.#position.push(bytes.charCodeAt(index));
    return offset;
  }
}

/** Appends `next` to `whole`. */
export function appendLogprobs(whole: Logprobs, next: Logprobs): void {
  for (const token of next.tokens) whole.tokens.push(token);
  for (const logprob of next.tokenLogprobs) whole.tokenLogprobs.push(logprob);
  for (const top of next.topLogprobs) whole.topLogprobs.push(top);
  for (const offset of next.textOffset) whole.textOffset.push(offset);
}

const mapJson = (map: ReadonlyMap<string, number>): string =>
  `{${Array.from(map, ([name, value]) => `${JSON.stringify(name)}:${value}`).join(',')}}`;

/** JSON text that keeps the order of the alternatives. */
export function logprobsJson(logprobs: Logprobs | null): string {
  if (logprobs === null) return 'null';
  const top = logprobs.topLogprobs.map((map) => (map === null ? 'null' : mapJson(map)));
  return (
    `{"tokens":${JSON.stringify(logprobs.tokens)},"token_logprobs":${JSON.stringify(logprobs.tokenLogprobs)},` +
    `"top_logprobs":[${top.join(',')}],"text_offset":${JSON.stringify(logprobs.textOffset)}}`
  );
}
