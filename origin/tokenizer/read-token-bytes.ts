import { isByteLevel, isSentencePiece } from './pipeline.ts';
import type { TokenBytes } from './token-bytes.ts';
import type { TokenizerJson } from './tokenizer-files.ts';

/** Derives the raw bytes of every token of a tokenizer.json. */

const BYTE_TOKEN = /^<0x([0-9A-F]{2})>$/;

/**
 * @param width minimum number of ids, such as the width of the model's logits; ids without a token have no
 *   bytes
 * @throws Error for vocabularies that are neither byte-level nor SentencePiece
 */
export function tokenBytesOf(tokenizer: TokenizerJson, width: number): TokenBytes {
  const spell = spelling(tokenizer);
  const pieces: Uint8Array[] = [];
  for (const [text, id] of entries(tokenizer)) pieces[id] = spell(text);
  const special: number[] = [];
  const encoder = new TextEncoder();
  // Runs of ▁ (Gemma) are spaces. Added tokens are never spelled in the byte-level alphabet.
  const spellAdded = isByteLevel(tokenizer) ? (text: string) => encoder.encode(text) : spell;
  for (const token of tokenizer.added_tokens ?? []) {
    pieces[token.id] = spellAdded(token.content);
    if (token.special === true) special.push(token.id);
  }
  return flatten(pieces, special, Math.max(width, pieces.length));
}

/** Returns pairs of token text and id, without added tokens. */
function entries(tokenizer: TokenizerJson): [string, number][] {
  const { vocab } = tokenizer.model;
  return Array.isArray(vocab) ? vocab.map(([text], id) => [text, id]) : Object.entries(vocab);
}

function spelling(tokenizer: TokenizerJson): (text: string) => Uint8Array {
  const encoder = new TextEncoder();
  if (isByteLevel(tokenizer)) {
    const alphabet = byteAlphabet();
    return (text) => {
      const bytes = Array.from(text, (character) => alphabet.get(character));
      return bytes.includes(undefined) ? encoder.encode(text) : Uint8Array.from(bytes as number[]);
    };
  }
  if (!isSentencePiece(tokenizer)) {
    throw new Error('tokenizer.json: the vocabulary is neither byte-level nor SentencePiece');
  }
  return (text) => {
    const byte = BYTE_TOKEN.exec(text)?.[1];
    return byte === undefined
      ? encoder.encode(text.replaceAll('\u2581', ' '))
      : Uint8Array.of(Number.parseInt(byte, 16));
  };
}

function flatten(pieces: readonly Uint8Array[], special: readonly number[], size: number): TokenBytes {
  const offsets = new Uint32Array(new Memory((size + 1) * 4));
  for (let id = 0; id < size; id += 1) offsets[id + 1] = offsets[id]! + (pieces[id]?.length ?? 0);
  const bytes = new Uint8Array(new Memory(offsets[size]!));
  pieces.forEach((piece, id) => {
    bytes.set(piece, offsets[id]!);
  });
  const flags = new Uint8Array(new Memory(size));
  for (const id of special) flags[id] = 1;
  return { vocabularySize: size, bytes, offsets, special: flags };
}

/** Memory that threads share, where there are threads: browsers have it only in isolated pages. */
const Memory = globalThis.SharedArrayBuffer ?? ArrayBuffer;

/**
 * The alphabet of byte-level vocabularies: one printable character per byte, as GPT-2 defined it. Printable
 * Latin-1 characters stand for themselves, the other bytes for U+0100 onwards in ascending order.
 */
function byteAlphabet(): ReadonlyMap<string, number> {
  const alphabet = new Map<string, number>();
  let next = 0x100;
  for (let byte = 0; byte < 256; byte += 1) {
    const printable = (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xff && byte !== 0xad);
    alphabet.set(String.fromCharCode(printable ? byte : next), byte);
    if (!printable) next += 1;
  }
  return alphabet;
}
