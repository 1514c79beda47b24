import { bytesOf, type TokenBytes } from '../../tokenizer/token-bytes.ts';
import type { SamplerVocabulary } from '../vocabulary.ts';

/** Longer breakers are cut to this many code points, longer tails to this many tokens, as in llama.cpp. */
const LONGEST_BREAKER = 40;
const LONGEST_TAIL = 20;

/** The token sequences in which one breaker can occur. */
export interface Breaker {
  /** Tokens whose own bytes contain the breaker: bit id & 31 of word id >>> 5. */
  readonly single: Uint32Array;
  /** By first token: the tokens that must follow it, where the breaker starts inside one token and ends in another. */
  readonly tails: ReadonlyMap<number, readonly (readonly number[])[]>;
}

export function containsToken(breaker: Breaker, id: number): boolean {
  return ((breaker.single[id >>> 5] ?? 0) & (1 << (id & 31))) !== 0;
}

/** Finds every token that contains the text, or that ends with a beginning of it. One scan over the vocabulary. */
export function compileBreaker(text: string, vocabulary: SamplerVocabulary): Breaker {
  const table = vocabulary.tokenBytes;
  const cut = [...text].slice(0, LONGEST_BREAKER).join('');
  const breaker = new TextEncoder().encode(cut);
  const single = new Uint32Array((table.vocabularySize + 31) >>> 5);
  const tails = new Map<number, (readonly number[])[]>();
  const tailAfter = tailTokens(breaker, vocabulary);
  for (const id of tokensContaining(table, breaker[0]!)) {
    const bytes = bytesOf(table, id);
    const overlaps = overlapsWith(bytes, breaker);
    if (overlaps.includes(breaker.length)) single[id >>> 5]! |= 1 << (id & 31);
    else {
      const following = overlaps.map((length) => tailAfter.get(length)).filter((tail) => tail !== undefined);
      addTails(tails, id, following);
    }
  }
  const whole = vocabulary.encode(cut).slice(0, LONGEST_TAIL + 1);
  if (whole.length > 1) addTails(tails, whole[0]!, [whole.slice(1)]);
  return { single, tails };
}

/** Ids of the tokens that contain this byte, ascending. */
function* tokensContaining(table: TokenBytes, byte: number): Generator<number> {
  let id = 0;
  for (let at = table.bytes.indexOf(byte); at >= 0; at = table.bytes.indexOf(byte, table.offsets[id]!)) {
    while (table.offsets[id + 1]! <= at) id++;
    yield id++;
  }
}

/** How many bytes of the breaker the token has from each place where it starts in it, to its end or the token's. */
function overlapsWith(bytes: Uint8Array, breaker: Uint8Array): number[] {
  const overlaps: number[] = [];
  for (let start = bytes.indexOf(breaker[0]!); start >= 0; start = bytes.indexOf(breaker[0]!, start + 1)) {
    const length = Math.min(breaker.length, bytes.length - start);
    let same = 1;
    while (same < length && bytes[start + same] === breaker[same]) same++;
    if (same === length) overlaps.push(length);
  }
  return overlaps;
}

/** What follows when the first so many bytes are already there, as tokens; only where whole characters follow. */
function tailTokens(breaker: Uint8Array, vocabulary: SamplerVocabulary): Map<number, readonly number[]> {
  const tails = new Map<number, readonly number[]>();
  for (let length = 1; length < breaker.length; length++) {
    if ((breaker[length]! & 0xc0) === 0x80) continue;
    const tail = vocabulary.encode(new TextDecoder().decode(breaker.subarray(length)));
    tails.set(length, tail.slice(0, LONGEST_TAIL));
  }
  return tails;
}

function addTails(
  tails: Map<number, (readonly number[])[]>,
  head: number,
  added: readonly (readonly number[])[],
): void {
  const known = tails.get(head) ?? [];
  for (const tail of added) {
    if (!known.some((other) => other.length === tail.length && other.every((id, i) => id === tail[i]))) {
      known.push(tail);
    }
  }
  if (known.length > 0) tails.set(head, known);
}
