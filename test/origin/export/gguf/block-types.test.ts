import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { BLOCK_TYPES, decodeBlocks } from '../../../../origin/export/gguf/block-types.ts';

/** Random blocks of every type, and what the Python package `gguf` (0.19.0) decodes them to. */
const reference = JSON.parse(readFileSync(new URL('block-types.json', import.meta.url), 'utf8')) as Readonly<
  Record<string, { readonly blocks: string; readonly values: string }>
>;

const bytesOf = (base64: string) => new Uint8Array(Buffer.from(base64, 'base64'));

test('covers every supported type', () => {
  expect([...BLOCK_TYPES.values()].map(({ name }) => name).sort()).toEqual(Object.keys(reference).sort());
});

describe.each([...BLOCK_TYPES.values()])('$name', (type) => {
  const blocks = bytesOf(reference[type.name]!.blocks);
  const expected = new Float32Array(bytesOf(reference[type.name]!.values).buffer);

  test('decodes to the bits of the reference', () => {
    const values = decodeBlocks(type, blocks);
    // Zeros may differ in sign: -0 · 0 against 0 · -0.
    expect(values.map((value) => value + 0)).toEqual(expected.map((value) => value + 0));
  });
});

describe.each([...BLOCK_TYPES.values()].filter(({ integers }) => integers !== null))('$name', (type) => {
  const blocks = bytesOf(reference[type.name]!.blocks);
  const expected = new Float32Array(bytesOf(reference[type.name]!.values).buffer);

  test('is integers of its width times scales', () => {
    const { bits, groupSize, levels, scale } = type.integers!;
    for (let at = 0, from = 0; at < blocks.length; at += type.bytes, from += type.elements) {
      const integers = new Int8Array(type.elements);
      levels(blocks, at, integers, 0);
      expect(Math.max(...integers)).toBeLessThan(2 ** (bits - 1));
      expect(Math.min(...integers)).toBeGreaterThanOrEqual(-(2 ** (bits - 1)));
      const values = Array.from(integers, (level, index) =>
        Math.fround(level * Math.fround(scale(blocks, at, Math.floor(index / groupSize)))),
      );
      expect(values.map((value) => value + 0)).toEqual(
        Array.from(expected.subarray(from, from + type.elements), (value) => value + 0),
      );
    }
  });
});
