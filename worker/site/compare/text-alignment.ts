import type { PromptToken } from '../api/completion-stream.ts';
import { tokenBytes } from '../api/token-bytes.ts';
import { jointLogprob } from '../tokens/probability.ts';

/** One stretch of a text that both tokenizations have, and as short as that allows. */
export interface AlignedSpan {
  readonly text: string;
  /** Length in bytes. */
  readonly bytes: number;
  readonly left: readonly PromptToken[];
  readonly right: readonly PromptToken[];
  /** Null if a token of the side has no logprob, or if the side has no token here. */
  readonly leftLogprob: number | null;
  readonly rightLogprob: number | null;
}

interface PlacedBytes {
  readonly token: PromptToken;
  readonly start: number;
  /** Null = the bytes of the token are not in the text, as those of a special token. */
  readonly end: number | null;
}

/** A token after one that is not in the text is searched in this many bytes. */
const SEARCH_BYTES = 64;

const isAt = (text: Uint8Array, bytes: Uint8Array, at: number): boolean =>
  at + bytes.length <= text.length && bytes.every((byte, index) => text[at + index] === byte);

/** Finds the bytes of each token in the text. */
function placeTokens(text: Uint8Array, tokens: readonly PromptToken[]): PlacedBytes[] {
  let position = 0;
  let isLost = false;
  return tokens.map((token) => {
    const bytes = tokenBytes(token.name);
    const last = isLost ? Math.min(text.length, position + SEARCH_BYTES) : position;
    for (let start = position; bytes.length > 0 && start <= last; start += 1) {
      if (!isAt(text, bytes, start)) continue;
      position = start + bytes.length;
      isLost = false;
      return { token, start, end: position };
    }
    isLost = true;
    return { token, start: position, end: null };
  });
}

/** Returns where tokens begin and end. */
const edgesOf = (placed: readonly PlacedBytes[], length: number): Set<number> =>
  new Set([0, length, ...placed.flatMap(({ start, end }) => (end === null ? [] : [start, end]))]);

/** Whether a place is between two characters. */
const isBetween = (text: Uint8Array, at: number): boolean =>
  at === text.length || (text[at]! & 0xc0) !== 0x80;

/**
 * Aligns two tokenizations of one text by its bytes: a span ends where a token of both sides and a character
 * end. Each token is in one span; one whose bytes are not in the text is in that of its neighbour.
 */
export function alignTokens(
  text: string,
  left: readonly PromptToken[],
  right: readonly PromptToken[],
): readonly AlignedSpan[] {
  const bytes = new TextEncoder().encode(text);
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  const sides = [placeTokens(bytes, left), placeTokens(bytes, right)] as const;
  const [ofLeft, ofRight] = sides.map((placed) => edgesOf(placed, bytes.length)) as [
    Set<number>,
    Set<number>,
  ];
  const edges = [...ofLeft]
    .filter((edge) => ofRight.has(edge) && isBetween(bytes, edge))
    .toSorted((a, b) => a - b);
  const [takeLeft, takeRight] = sides.map(taker) as [Taker, Taker];
  return edges.slice(1).map((end, index) => {
    const start = edges[index]!;
    const isLast = end === bytes.length;
    const span = { left: takeLeft(end, isLast), right: takeRight(end, isLast) };
    return {
      ...span,
      text: decoder.decode(bytes.subarray(start, end)),
      bytes: end - start,
      leftLogprob: span.left.length === 0 ? null : jointLogprob(span.left),
      rightLogprob: span.right.length === 0 ? null : jointLogprob(span.right),
    };
  });
}

type Taker = (end: number, isLast: boolean) => PromptToken[];

/** Returns a function that takes the next tokens, up to those that begin before a place. */
function taker(placed: readonly PlacedBytes[]): Taker {
  let next = 0;
  return (end, isLast) => {
    const from = next;
    while (next < placed.length && (isLast || placed[next]!.start < end)) next += 1;
    return placed.slice(from, next).map(({ token }) => token);
  };
}

/** Sums over the spans that both sides have a logprob for. */
export interface TextDifference {
  readonly spans: number;
  readonly bytes: number;
  readonly left: number;
  readonly right: number;
}

export function differenceOf(spans: readonly AlignedSpan[]): TextDifference {
  let sum: TextDifference = { spans: 0, bytes: 0, left: 0, right: 0 };
  for (const { leftLogprob, rightLogprob, bytes } of spans) {
    if (leftLogprob === null || rightLogprob === null) continue;
    sum = {
      spans: sum.spans + 1,
      bytes: sum.bytes + bytes,
      left: sum.left + leftLogprob,
      right: sum.right + rightLogprob,
    };
  }
  return sum;
}
