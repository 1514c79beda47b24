import { bytesOf } from '../tokenizer/token-bytes.ts';
import type { TokenHistory } from './token-history.ts';
import type { SamplerVocabulary } from './vocabulary.ts';

/** Longer breakers are cut to this many code points, longer tails to this many tokens, as in llama.cpp. */
const MAX_BREAKER_LENGTH = 40;
const MAX_TAIL_LENGTH = 20;

type Tail = readonly number[];

/** A token's part in breakers. */
export interface Breaking {
  /** Its own bytes contain a breaker. */
  readonly isBreaker: boolean;
  /** The tokens that must follow it if a breaker starts inside it and ends in another. */
  readonly tails: readonly Tail[];
}

const NONE: readonly number[] = [];
const NO_BREAKING: Breaking = { isBreaker: false, tails: [] };

/** The breakers of one request. Looks a token up when it first occurs: few tokens of a large vocabulary ever do. */
export class Breakers {
  readonly #vocabulary: SamplerVocabulary;
  readonly #breakers: readonly Breaker[];
  readonly #known = new Map<number, Breaking>();

  constructor(texts: readonly string[], vocabulary: SamplerVocabulary) {
    this.#vocabulary = vocabulary;
    this.#breakers = [...new Set(texts)]
      .filter((text) => text !== '')
      .map((text) => new Breaker(text, vocabulary));
  }

  of(id: number): Breaking {
    let breaking = this.#known.get(id);
    if (breaking === undefined) {
      breaking = this.#lookUp(id);
      this.#known.set(id, breaking);
    }
    return breaking;
  }

  #lookUp(id: number): Breaking {
    const bytes = bytesOf(this.#vocabulary.tokenBytes, id);
    let isBreaker = false;
    const tails: Tail[] = [];
    for (const breaker of this.#breakers) {
      const overlaps = breaker.overlapsWith(bytes);
      if (overlaps.includes(breaker.bytes.length)) isBreaker = true;
      else for (const length of overlaps) tails.push(...breaker.tailAfter(length));
      if (breaker.tokens[0] === id && breaker.tokens.length > 1) tails.push(breaker.tokens.slice(1));
    }
    return isBreaker || tails.length > 0 ? { isBreaker, tails } : NO_BREAKING;
  }
}

class Breaker {
  readonly bytes: Uint8Array;
  /** Its tokenisation; empty for a single byte, which lies within one token. So the usual breakers need no tokenizer. */
  readonly tokens: Tail;
  readonly #vocabulary: SamplerVocabulary;
  readonly #tails = new Map<number, readonly Tail[]>();

  constructor(text: string, vocabulary: SamplerVocabulary) {
    const cut = [...text].slice(0, MAX_BREAKER_LENGTH).join('');
    this.bytes = new TextEncoder().encode(cut);
    this.#vocabulary = vocabulary;
    this.tokens = this.bytes.length === 1 ? NONE : vocabulary.encode(cut).slice(0, MAX_TAIL_LENGTH + 1);
  }

  /** For each place in the token where the breaker starts: how many of its bytes the token holds. */
  overlapsWith(token: Uint8Array): readonly number[] {
    const { bytes } = this;
    let overlaps = NONE;
    for (let start = 0; start < token.length; start++) {
      const length = Math.min(bytes.length, token.length - start);
      let same = 0;
      while (same < length && token[start + same] === bytes[same]) same++;
      if (same === length) overlaps = [...overlaps, length];
    }
    return overlaps;
  }

  /** The tokens of what follows the first `length` bytes; none if these end within a character. */
  tailAfter(length: number): readonly Tail[] {
    let tails = this.#tails.get(length);
    if (tails === undefined) {
      const splitsCharacter = (this.bytes[length]! & 0xc0) === 0x80;
      const rest = new TextDecoder().decode(this.bytes.subarray(length));
      tails = splitsCharacter ? [] : [this.#vocabulary.encode(rest).slice(0, MAX_TAIL_LENGTH)];
      this.#tails.set(length, tails);
    }
    return tails;
  }
}

/** Finds the latest breaker in a growing history. Each call reads the new tokens, and as far back as a tail can reach. */
export class LatestBreaker {
  readonly #breakers: Pick<Breakers, 'of'>;
  /** All breakers that start before this position and have ended are found. */
  #settled = 0;
  /** Start and end of the latest one found. */
  #start = -1;
  #end = -1;
  /** Of the history, at the last call. */
  #length = 0;

  constructor(breakers: Pick<Breakers, 'of'>) {
    this.#breakers = breakers;
  }

  /** The number of tokens after the breaker that starts last within the window; the window's length if there is none. */
  lengthSince(history: Pick<TokenHistory, 'tokens' | 'length'>, window: number): number {
    const { tokens, length } = history;
    if (length < this.#length) {
      // Tokens were removed.
      this.#settled = 0;
      this.#start = -1;
      this.#end = -1;
    }
    this.#length = length;
    const first = length - window;
    for (let head = length - 1; head >= Math.max(first, this.#settled); head--) {
      const { isBreaker, tails } = this.#breakers.of(tokens[head]!);
      let following = isBreaker ? 0 : -1;
      for (const tail of tails) {
        if (tail.length > following && follows(tokens, head + 1, length, tail)) following = tail.length;
      }
      if (following < 0) continue;
      this.#start = head;
      this.#end = head + 1 + following;
      break;
    }
    this.#settled = Math.max(this.#settled, length - MAX_TAIL_LENGTH);
    return this.#start >= first ? length - this.#end : window;
  }
}

/** Whether the history has these tokens from `start` on, before `end`. */
function follows(tokens: Int32Array, start: number, end: number, tail: Tail): boolean {
  if (start + tail.length > end) return false;
  for (let i = 0; i < tail.length; i++) if (tokens[start + i] !== tail[i]) return false;
  return true;
}
