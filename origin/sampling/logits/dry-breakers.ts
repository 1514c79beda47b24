import { bytesOf } from '../../tokenizer/token-bytes.ts';
import type { TokenHistory } from '../token-history.ts';
import type { SamplerVocabulary } from '../vocabulary.ts';

/** Longer breakers are cut to this many code points, longer tails to this many tokens, as in llama.cpp. */
const LONGEST_BREAKER = 40;
const LONGEST_TAIL = 20;

type Tail = readonly number[];

/** How a token takes part in breakers. */
export interface Breaking {
  /** Its own bytes contain one. */
  readonly whole: boolean;
  /** The tokens that must follow it, where one starts inside it and ends in another. */
  readonly tails: readonly Tail[];
}

const NONE: readonly number[] = [];
const NO_BREAKING: Breaking = { whole: false, tails: [] };

/**
 * The breakers of one request. What a token has to do with them is found out when it first occurs: vocabularies are large,
 * and few of their tokens ever do.
 */
export class Breakers {
  private readonly vocabulary: SamplerVocabulary;
  private readonly breakers: readonly Breaker[];
  private readonly known = new Map<number, Breaking>();

  constructor(texts: readonly string[], vocabulary: SamplerVocabulary) {
    this.vocabulary = vocabulary;
    this.breakers = [...new Set(texts)]
      .filter((text) => text !== '')
      .map((text) => new Breaker(text, vocabulary));
  }

  of(id: number): Breaking {
    let breaking = this.known.get(id);
    if (breaking === undefined) {
      breaking = this.lookUp(id);
      this.known.set(id, breaking);
    }
    return breaking;
  }

  private lookUp(id: number): Breaking {
    const bytes = bytesOf(this.vocabulary.tokenBytes, id);
    let whole = false;
    const tails: Tail[] = [];
    for (const breaker of this.breakers) {
      const overlaps = breaker.overlapsWith(bytes);
      if (overlaps.includes(breaker.bytes.length)) whole = true;
      else for (const length of overlaps) tails.push(...breaker.tailAfter(length));
      if (breaker.tokens[0] === id && breaker.tokens.length > 1) tails.push(breaker.tokens.slice(1));
    }
    return whole || tails.length > 0 ? { whole, tails } : NO_BREAKING;
  }
}

class Breaker {
  readonly bytes: Uint8Array;
  /** Its tokenisation; none of a single byte, which no token ends within: so the usual breakers need no tokenizer. */
  readonly tokens: Tail;
  private readonly vocabulary: SamplerVocabulary;
  private readonly tails = new Map<number, readonly Tail[]>();

  constructor(text: string, vocabulary: SamplerVocabulary) {
    const cut = [...text].slice(0, LONGEST_BREAKER).join('');
    this.bytes = new TextEncoder().encode(cut);
    this.vocabulary = vocabulary;
    this.tokens = this.bytes.length === 1 ? NONE : vocabulary.encode(cut).slice(0, LONGEST_TAIL + 1);
  }

  /** How many bytes of the breaker the token has from each place where it starts in it, to its end or the token's. */
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

  /** What follows when the first so many bytes are already there, as tokens; nothing where no whole characters follow. */
  tailAfter(length: number): readonly Tail[] {
    let tails = this.tails.get(length);
    if (tails === undefined) {
      const splitsCharacter = (this.bytes[length]! & 0xc0) === 0x80;
      const rest = new TextDecoder().decode(this.bytes.subarray(length));
      tails = splitsCharacter ? [] : [this.vocabulary.encode(rest).slice(0, LONGEST_TAIL)];
      this.tails.set(length, tails);
    }
    return tails;
  }
}

/** The latest breaker in a history that grows: each call looks at what is new, and as far back as a tail can reach. */
export class LatestBreaker {
  private readonly breakers: Pick<Breakers, 'of'>;
  /** What starts before this position has been found, if it has ended. */
  private settled = 0;
  /** Where the latest one found starts and ends. */
  private start = -1;
  private end = -1;

  constructor(breakers: Pick<Breakers, 'of'>) {
    this.breakers = breakers;
  }

  /** Tokens after the one that starts last within the window; the window where there is none. */
  lengthSince(history: Pick<TokenHistory, 'tokens' | 'length'>, window: number): number {
    const { tokens, length } = history;
    const first = length - window;
    for (let head = length - 1; head >= Math.max(first, this.settled); head--) {
      const { whole, tails } = this.breakers.of(tokens[head]!);
      let following = whole ? 0 : -1;
      for (const tail of tails) {
        if (tail.length > following && follows(tokens, head + 1, length, tail)) following = tail.length;
      }
      if (following < 0) continue;
      this.start = head;
      this.end = head + 1 + following;
      break;
    }
    this.settled = Math.max(this.settled, length - LONGEST_TAIL);
    return this.start >= first ? length - this.end : window;
  }
}

/** Whether these tokens stand from `start` on, before `end`. */
function follows(tokens: Int32Array, start: number, end: number, tail: Tail): boolean {
  if (start + tail.length > end) return false;
  for (let i = 0; i < tail.length; i++) if (tokens[start + i] !== tail[i]) return false;
  return true;
}
