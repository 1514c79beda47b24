import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Utf8Assembler } from '../../../origin/tokenizer/detokenizer.ts';

const reference = (bytes: Uint8Array) => new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes);

/** Bytes with many leads, continuations and edge values, so that broken sequences of every kind are common. */
const edgeBytes = [0x00, 0x41, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xc1, 0xc2, 0xdf, 0xe0, 0xe2];
const edgeByte = fc.constantFrom(...edgeBytes, 0xed, 0xef, 0xf0, 0xf3, 0xf4, 0xf5, 0xff);
const brokenText = fc
  .array(
    fc.oneof(
      edgeByte.map((byte) => [byte]),
      fc.nat(255).map((byte) => [byte]),
      fc.string({ unit: 'binary', maxLength: 3 }).map((text) => [...new TextEncoder().encode(text)]),
    ),
    { maxLength: 24 },
  )
  .map((parts) => Uint8Array.from(parts.flat()));

function inPieces(bytes: Uint8Array, sizes: readonly number[]): string[] {
  const assembler = new Utf8Assembler();
  const texts: string[] = [];
  let at = 0;
  for (const size of [...sizes, bytes.length]) {
    texts.push(assembler.push(bytes.subarray(at, at + size)));
    at += size;
  }
  return [...texts, assembler.end()];
}

describe('Utf8Assembler', () => {
  test('equals TextDecoder for any bytes in any pieces', () => {
    const sizes = fc.array(fc.nat(5), { maxLength: 30 });
    fc.assert(
      fc.property(brokenText, sizes, (bytes, pieces) => {
        expect(inPieces(bytes, pieces).join('')).toBe(reference(bytes));
      }),
      { numRuns: 3000 },
    );
  });

  test('holds back no more than a streaming TextDecoder does, and never more than three bytes', () => {
    fc.assert(
      fc.property(brokenText, (bytes) => {
        const assembler = new Utf8Assembler();
        const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
        for (const byte of bytes) {
          const piece = Uint8Array.of(byte);
          expect(assembler.push(piece)).toBe(decoder.decode(piece, { stream: true }));
          expect(assembler.held).toBeLessThanOrEqual(3);
        }
      }),
      { numRuns: 1000 },
    );
  });

  test('splits no valid text with a replacement character and no surrogate pair', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), fc.array(fc.nat(3)), (text, sizes) => {
        for (const piece of inPieces(new TextEncoder().encode(text), sizes)) {
          expect(piece.isWellFormed()).toBe(true);
          if (!text.includes('\ufffd')) expect(piece).not.toContain('\ufffd');
        }
      }),
    );
  });

  test('a genuine U+FFFD passes at once', () => {
    expect(new Utf8Assembler().push(Uint8Array.of(0xef, 0xbf, 0xbd))).toBe('\ufffd');
  });

  test('an unfinished character ends as one U+FFFD, and the next text starts clean', () => {
    const assembler = new Utf8Assembler();
    expect(assembler.push(Uint8Array.of(0xf0, 0x9f, 0x98))).toBe('');
    expect(assembler.end()).toBe('\ufffd');
    expect(assembler.end()).toBe('');
    expect(assembler.push(Uint8Array.of(0x80))).toBe('\ufffd');
  });
});
