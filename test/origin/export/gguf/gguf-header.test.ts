import { Buffer } from 'node:buffer';
import { describe, expect, test } from 'vitest';
import { readGgufHeader } from '../../../../origin/export/gguf/gguf-header.ts';
import type { ByteSource } from '../../../../origin/export/gguf/header-cursor.ts';
import { randomFrom, runs } from '../../../support/random.ts';
import { type Tensor, type Value, writeGguf } from './gguf-writer.ts';

const F32 = 0;
const Q8_0 = 8;

const sourceOf = (bytes: Uint8Array): ByteSource => ({
  size: bytes.length,
  read(position, into) {
    const part = bytes.subarray(position, position + into.length);
    if (part.length !== into.length) throw new RangeError('reads beyond the end of the file');
    into.set(part);
  },
});
const read = (bytes: Uint8Array) => readGgufHeader(sourceOf(bytes));

const metadata: Readonly<Record<string, Value>> = {
  'general.architecture': { text: 'llama' },
  'llama.block_count': { u32: 1 },
  'llama.attention.layer_norm_rms_epsilon': { f32: 1e-5 },
  'tokenizer.ggml.tokens': { texts: ['<s>', 'a', '\u2581b'] },
  'tokenizer.ggml.token_type': { i32s: [3, 1, 1] },
  'tokenizer.ggml.add_bos_token': { bool: true },
};
const norm: Tensor = { name: 'output_norm.weight', type: F32, dimensions: [5], data: Buffer.alloc(20) };
const table: Tensor = {
  name: 'token_embd.weight',
  type: Q8_0,
  dimensions: [64, 3],
  data: Buffer.alloc(3 * 2 * 34),
};
const file = (...tensors: readonly Tensor[]) => writeGguf(metadata, tensors);

describe('a sound file', () => {
  const header = read(file(norm, table));

  test('gives the metadata, floats with the shortest digits', () => {
    expect(Object.fromEntries(header.metadata)).toEqual({
      'general.architecture': 'llama',
      'llama.block_count': 1,
      'llama.attention.layer_norm_rms_epsilon': 1e-5,
      'tokenizer.ggml.tokens': ['<s>', 'a', '\u2581b'],
      'tokenizer.ggml.token_type': Int32Array.of(3, 1, 1),
      'tokenizer.ggml.add_bos_token': true,
    });
  });

  test('gives the tensors with the outermost dimension first', () => {
    const [first, second] = header.tensors;
    expect([first?.shape, first?.bytes]).toEqual([[5], 20]);
    expect([second?.shape, second?.bytes, second?.type.name]).toEqual([[3, 64], 204, 'Q8_0']);
    expect(second!.start - first!.start).toBe(32);
  });
});

/** Puts a 64-bit number in place of the one `offset` bytes behind the end of a text. */
function withNumber(bytes: Buffer, after: string, offset: number, value: bigint): Buffer {
  const copy = Buffer.from(bytes);
  copy.writeBigUInt64LE(value, copy.indexOf(after) + after.length + offset);
  return copy;
}

test.each<[string, Buffer, string]>([
  ['another format', Buffer.from('GGML0000000000000000000000'), 'the header does not begin with "GGUF"'],
  ['an empty file', Buffer.alloc(0), 'the header needs 4 more bytes, but the file ends after 0'],
  ['version 1', Buffer.concat([Buffer.from('GGUF'), Buffer.of(1, 0, 0, 0)]), 'version 1; versions 2 and 3'],
  ['big-endian', Buffer.concat([Buffer.from('GGUF'), Buffer.of(0, 0, 0, 3)]), 'big-endian'],
  ['too many tensors', withNumber(file(norm), 'GGUF', 4, 2n ** 60n), 'tensors, more than the file can'],
  ['too many keys', withNumber(file(norm), 'GGUF', 12, 2n ** 40n), 'keys, more than the file can contain'],
  [
    'an array longer than the file',
    withNumber(file(norm), 'token_type', 8, 2n ** 33n),
    'key "tokenizer.ggml.token_type" needs 34359738368 more bytes',
  ],
  [
    'more texts than the file has bytes',
    withNumber(file(norm), 'ggml.tokens', 8, 1000n),
    'key "tokenizer.ggml.tokens" claims 1000 texts: too many',
  ],
  [
    'a text longer than the file',
    withNumber(file(norm), 'general.architecture', 4, 100_000n),
    'key "general.architecture" needs 100000 more bytes',
  ],
  ['a file cut in the header', file(norm).subarray(0, 300), 'more bytes, but the file ends'],
  ['a file cut in the data', file(norm, table).subarray(0, -40), 'tensor "token_embd.weight" ends at byte'],
  [
    'an unknown type',
    file({ ...norm, type: 21 }),
    'tensor "output_norm.weight" has type IQ3_S; supported are',
  ],
  ['a dimension of 0', file({ ...norm, dimensions: [0] }), 'has the shape 0, which F32 does not allow'],
  ['5 dimensions', file({ ...norm, dimensions: [1, 1, 1, 1, 5] }), 'has 5 dimensions; 1 to 4 are allowed'],
  [
    'a row of broken blocks',
    file({ ...table, dimensions: [60, 3] }),
    'tensor "token_embd.weight" has the shape 3 × 60, which Q8_0 does not allow',
  ],
  [
    'dimensions beyond the file',
    withNumber(file(norm), 'output_norm.weight', 4, 2n ** 62n),
    'tensor "output_norm.weight" ends at byte',
  ],
  [
    'an odd offset',
    file({ ...norm, offset: 4 }),
    'tensor "output_norm.weight" begins at 4, no multiple of 32',
  ],
  [
    'overlapping tensors',
    file(table, { ...norm, offset: 192 }),
    'tensor "output_norm.weight" overlaps "token_embd.weight"',
  ],
  [
    'a key that occurs twice',
    Buffer.from(
      writeGguf({ ab: { u32: 1 }, ac: { u32: 1 } }, [norm])
        .toString('latin1')
        .replace('ac', 'ab'),
      'latin1',
    ),
    'key "ab" occurs twice',
  ],
  [
    'an alignment of 3',
    writeGguf({ 'general.alignment': { u32: 3 } }, [norm]),
    'key "general.alignment" must be a power of two',
  ],
])('refuses %s', (_, bytes, message) => {
  expect(() => read(bytes)).toThrow(message);
});

const CASES = runs(20_000);

test(`${CASES} damaged headers give an error that names the place, or tensors inside the file`, () => {
  const random = randomFrom(33);
  const integer = (below: number) => Math.floor(random() * below);
  const sound = file(norm, table, { ...norm, name: 'blk.0.attn_norm.weight' });
  const extremes = [0n, 1n, 5n, 2n ** 31n, 2n ** 32n - 1n, 2n ** 53n, 2n ** 63n, 2n ** 64n - 1n];
  let refused = 0;
  for (let index = 0; index < CASES; index += 1) {
    let bytes = Buffer.from(sound);
    for (let changes = integer(3); changes >= 0; changes -= 1) {
      const at = integer(bytes.length - 8);
      const kind = integer(4);
      if (kind === 0) bytes[at] = integer(256);
      else if (kind === 1) bytes.writeBigUInt64LE(extremes[integer(extremes.length)]!, at);
      else if (kind === 2) bytes.copy(bytes, at, integer(bytes.length), integer(bytes.length) + 16);
      else if (bytes.length > 64) bytes = bytes.subarray(0, Math.max(32, at));
    }
    let bytesRead = 0;
    const source = sourceOf(bytes);
    const counted: ByteSource = {
      size: source.size,
      read(position, into) {
        bytesRead += into.length;
        source.read(position, into);
      },
    };
    try {
      const places = readGgufHeader(counted).tensors.map(({ start, bytes: size }) => [start, start + size]);
      const inOrder = places.sort(([left], [right]) => left! - right!);
      inOrder.forEach(([start, end], place) => {
        expect(end).toBeLessThanOrEqual(inOrder[place + 1]?.[0] ?? bytes.length);
        expect(start).toBeLessThan(end!);
      });
    } catch (error) {
      expect((error as Error).message).toMatch(/^(the header|key (\d+ of \d+|")|tensor (\d+|")) ?/);
      refused += 1;
    }
    expect(bytesRead).toBeLessThanOrEqual(bytes.length);
  }
  expect(refused).toBeGreaterThan(CASES / 3);
});
