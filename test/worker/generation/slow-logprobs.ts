import type { TokenLogprob } from '../../../shared/generation.ts';

/** The logprobs object made the plain, slow way: everything decoded anew for every token. */

const bytesOf = (units: string): Buffer => Buffer.from(units, 'latin1');

const codePoints = (text: string): number => Array.from(text).length;

/** Code points of bytes decoded as one whole; an unfinished character at the end counts as one. */
const decodedLength = (bytes: Buffer): number =>
  codePoints(new TextDecoder('utf-8', { ignoreBOM: true, fatal: false }).decode(bytes));

/** Code points that are complete. */
const completeLength = (bytes: Buffer): number =>
  codePoints(new TextDecoder('utf-8', { ignoreBOM: true, fatal: false }).decode(bytes, { stream: true }));

function slowName(units: string): string {
  const bytes = bytesOf(units);
  const text = bytes.toString('utf8');
  if (Buffer.from(text, 'utf8').equals(bytes)) return text;
  return `bytes:${[...bytes].map((byte) => `\\x${byte.toString(16).padStart(2, '0')}`).join('')}`;
}

/** The fewest digits that still denote the same float32. */
export function slowShortest(value: number): number {
  for (let digits = 1; ; digits += 1) {
    const candidate = Number.parseFloat(value.toPrecision(digits));
    if (Math.fround(candidate) === Math.fround(value)) return candidate;
  }
}

const slowValue = (logprob: number): number => (logprob <= -9_999 ? -9_999 : slowShortest(logprob));

export interface PlainLogprobs {
  readonly tokens: string[];
  readonly token_logprobs: (number | null)[];
  readonly top_logprobs: (Record<string, number> | null)[];
  readonly top_token_ids?: (Record<string, number> | null)[];
  readonly text_offset: number[];
}

/** The best tokens, then the token itself. */
function candidates(
  token: TokenLogprob,
  topLogprobs: number,
): readonly (readonly [number, string, number])[] {
  const listed = (token.topLogprobs ?? []).filter((_, rank) => rank < topLogprobs);
  return [...listed, [token.id, token.bytes, token.logprob ?? 0]];
}

/** The name of each candidate: its text, unless an earlier one or the token itself has it. */
function slowNames(token: TokenLogprob, topLogprobs: number): (readonly [string, number, number])[] {
  const all = candidates(token, topLogprobs);
  return all.map(([id, bytes, logprob]) => {
    const alike = all.filter(([, other]) => slowName(other) === slowName(bytes));
    const holder = alike.some(([other]) => other === token.id) ? token.id : alike[0]?.[0];
    return [holder === id ? slowName(bytes) : `token_id:${id}`, id, logprob];
  });
}

export function slowTopIds(token: TokenLogprob, topLogprobs: number): Record<string, number> | null {
  if (token.logprob === null) return null;
  return Object.fromEntries(slowNames(token, topLogprobs).map(([name, id]) => [name, id]));
}

function slowTop(token: TokenLogprob, topLogprobs: number): Record<string, number> | null {
  if (token.logprob === null) return null;
  const all = slowNames(token, topLogprobs);
  return Object.fromEntries(all.map(([name, , logprob]) => [name, slowValue(logprob)]));
}

export function slowLogprobs(tokens: readonly TokenLogprob[], topLogprobs: number): PlainLogprobs {
  const visibleBefore = (index: number) =>
    Buffer.concat(
      tokens
        .slice(0, index)
        .filter(({ hidden }) => !hidden)
        .map(({ bytes }) => bytesOf(bytes)),
    );
  return {
    tokens: tokens.map(({ bytes }) => slowName(bytes)),
    token_logprobs: tokens.map(({ logprob }) => (logprob === null ? null : slowValue(logprob))),
    top_logprobs: tokens.map((token) => slowTop(token, topLogprobs)),
    text_offset: tokens.map(({ bytes, hidden }, index) => {
      const before = visibleBefore(index);
      if (hidden || bytes === '') return completeLength(before);
      return decodedLength(Buffer.concat([before, bytesOf(bytes).subarray(0, 1)])) - 1;
    }),
  };
}
