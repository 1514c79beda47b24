import { crc32, deflateSync } from 'node:zlib';
import sharp from 'sharp';
import { describe, expect, it } from 'vitest';
import { ImageReader } from '../../../origin/images/image-reader.ts';
import type { ImageRecipe } from '../../../origin/model/config/preprocessor-config.ts';
import { STAYS as signal } from '../request/served-models.ts';
import { plainResize } from './plain-resize.ts';

const STAYS = { tenantId: 'a', signal };
const MEAN = [0.48145466, 0.4578275, 0.40821073] as const;
const DEVIATION = [0.26862954, 0.26130258, 0.27577711] as const;

/** Levels come out as they are. */
const plain = (width: number, height: number, resize: ImageRecipe['resize'] = null): ImageRecipe => ({
  resize,
  width,
  height,
  factor: 1,
  mean: [0, 0, 0],
  deviation: [1, 1, 1],
});

/**
 * 16 × 8 pixels of CMYK, the left half (91, 161, 20, 40), the right one (200, 10, 120, 0); and Pillow's RGB
 * of them.
 */
const INKS = Buffer.from(
  '/9j/7gAOQWRvYmUAZAAAAAAA/9sAQwABAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEB' +
    'AQEBAQEBAQEBAQEBAQEB/8AAFAgACAAQBEMRAE0RAFkRAEsRAP/EABYAAQEBAAAAAAAAAAAAAAAAAAoJC//EABQQAQAAAAAAAAAAAAAAAAAAAAD/2gAOBEMATQBZAEsAAD8ApAneawVwEu0uA31QH//Z',
  'base64',
);
const LIGHT_OF_INKS = [
  [138, 79, 198],
  [55, 245, 135],
] as const;

type Level = (x: number, y: number, channel: number) => number;

function raw(width: number, height: number, channels: 1 | 2 | 3 | 4, level: Level) {
  const data = Buffer.alloc(width * height * channels);
  for (let i = 0; i < data.length; i++) {
    const pixel = Math.floor(i / channels);
    data[i] = level(pixel % width, Math.floor(pixel / width), i % channels);
  }
  return sharp(data, { raw: { width, height, channels } });
}

const speckled: Level = (x, y, channel) => (x * 37 + y * 101 + channel * 59 + x * y) % 256;

const expectLevels = (pixels: Float32Array, width: number, height: number, level: Level) => {
  const expected = new Float32Array(3 * width * height);
  for (let i = 0; i < expected.length; i++) {
    const at = i % (width * height);
    expected[i] = level(at % width, Math.floor(at / width), Math.floor(i / (width * height)));
  }
  expect(pixels).toEqual(expected);
};

const read = async (recipe: ImageRecipe, image: Buffer | Promise<Buffer>) =>
  new ImageReader(recipe).read(await image, STAYS);

describe('decoding', () => {
  it.each([
    ['PNG', () => raw(6, 4, 3, speckled).png().toBuffer()],
    ['lossless WebP', () => raw(6, 4, 3, speckled).webp({ lossless: true }).toBuffer()],
  ])('%s: every level, channel by channel', async (_, image) => {
    expectLevels(await read(plain(6, 4), image()), 6, 4, speckled);
  });

  it('JPEG: levels close to the original', async () => {
    const grey: Level = (x) => x * 8;
    const pixels = await read(plain(16, 16), raw(16, 16, 3, grey).jpeg({ quality: 100 }).toBuffer());
    pixels.forEach((level, at) => {
      expect(Math.abs(level - grey(at % 16, 0, 0))).toBeLessThanOrEqual(3);
    });
  });

  it('drops alpha and shows the hidden colour', async () => {
    const image = raw(5, 3, 4, (x, y, channel) => (channel === 3 ? x * 60 : speckled(x, y, channel)));
    expectLevels(await read(plain(5, 3), image.png().toBuffer()), 5, 3, speckled);
    const halved = plain(2, 2, { kernel: 'bilinear', size: { width: 2, height: 2 } });
    const hidden = raw(4, 4, 4, (x, _, channel) => (channel < 3 ? 80 : x === 0 ? 0 : 255));
    expectLevels(await read(halved, hidden.png().toBuffer()), 2, 2, () => 80);
  });

  it('triples grey, with and without alpha', async () => {
    const grey: Level = (x, y) => x * 40 + y;
    const image = raw(5, 3, 1, grey).toColourspace('b-w').png().toBuffer();
    expect((await sharp(await image).metadata()).channels).toBe(1);
    expectLevels(await read(plain(5, 3), image), 5, 3, grey);
    const withAlpha = raw(5, 3, 2, (x, y, channel) => (channel === 0 ? grey(x, y, 0) : 100));
    const both = withAlpha.toColourspace('b-w').png().toBuffer();
    expect((await sharp(await both).metadata()).channels).toBe(2);
    expectLevels(await read(plain(5, 3), both), 5, 3, grey);
  });

  it('cuts 16 bits to 8', async () => {
    const image = sixteenBitPng(4, 2, (x, y, channel) => (speckled(x, y, channel) << 8) | 0x90);
    expect((await sharp(image).metadata()).depth).toBe('ushort');
    expectLevels(await read(plain(4, 2), image), 4, 2, speckled);
  });

  it('converts CMYK without profiles', async () => {
    expect((await sharp(INKS).metadata()).space).toBe('cmyk');
    const [left, right] = LIGHT_OF_INKS;
    expectLevels(await read(plain(16, 8), INKS), 16, 8, (x, _, channel) => (x < 8 ? left : right)[channel]!);
  });

  it('takes the first frame of an animation', async () => {
    const frames = Buffer.concat([Buffer.alloc(4 * 4 * 3, 200), Buffer.alloc(4 * 4 * 3, 10)]);
    const image = sharp(frames, { raw: { width: 4, height: 8, channels: 3, pageHeight: 4 } });
    const gif = await image.gif().toBuffer();
    expect((await sharp(gif).metadata()).pages).toBe(2);
    expectLevels(await read(plain(4, 4), gif), 4, 4, () => 200);
  });

  it('rotates by the EXIF tag', async () => {
    const lying = turnedPng(6, 4, 6, speckled);
    expect((await sharp(lying).metadata()).orientation).toBe(6);
    expectLevels(await read(plain(4, 6), lying), 4, 6, (x, y, channel) => speckled(y, 3 - x, channel));
  });
});

describe('preparation', () => {
  it('scales and normalizes levels per channel', async () => {
    const recipe = { ...plain(16, 16), factor: 1 / 255, mean: MEAN, deviation: DEVIATION };
    const every: Level = (x, y) => y * 16 + x;
    const pixels = await read(recipe, raw(16, 16, 3, every).png().toBuffer());
    expectLevels(pixels, 16, 16, (x, y, channel) =>
      Math.fround((every(x, y, 0) * (1 / 255) - MEAN[channel]!) / DEVIATION[channel]!),
    );
  });

  it('crops the centre; an odd pixel is dropped at the end', async () => {
    const pixels = await read(plain(4, 2), raw(7, 5, 3, speckled).png().toBuffer());
    expectLevels(pixels, 4, 2, (x, y, channel) => speckled(x + 1, y + 1, channel));
  });

  it('pads a smaller image with black; an odd line goes before it', async () => {
    const pixels = await read(
      plain(7, 6),
      raw(4, 3, 3, (...at) => 1 + (speckled(...at) % 255))
        .png()
        .toBuffer(),
    );
    expectLevels(pixels, 7, 6, (x, y, channel) =>
      x >= 2 && x < 6 && y >= 2 && y < 5 ? 1 + (speckled(x - 2, y - 2, channel) % 255) : 0,
    );
  });

  it('resizes the shortest edge and keeps proportions', async () => {
    const recipe = plain(10, 10, { kernel: 'nearest', size: 3 });
    const isBright = (pixels: Float32Array) => pixels.subarray(0, 100).map((level) => (level > 0 ? 1 : 0));
    const bright: Level = () => 255;
    // 3 × floor(3 · 14 / 6) = 3 × 7, in the middle of 10 × 10.
    const upright = isBright(await read(recipe, raw(6, 14, 3, bright).png().toBuffer()));
    expect(upright.reduce((sum, one) => sum + one, 0)).toBe(21);
    expect(upright.subarray(20, 30).reduce((sum, one) => sum + one, 0)).toBe(3);
    const lying = isBright(await read(recipe, raw(14, 6, 3, bright).png().toBuffer()));
    expect(lying.subarray(40, 50).reduce((sum, one) => sum + one, 0)).toBe(7);
  });

  it('nearest: blocks and pixels map exactly', async () => {
    const blocks: Level = (x, y, channel) => speckled(x >> 1, y >> 1, channel);
    const smaller = plain(6, 4, { kernel: 'nearest', size: { width: 6, height: 4 } });
    expectLevels(await read(smaller, raw(12, 8, 3, blocks).png().toBuffer()), 6, 4, speckled);
    const larger = plain(12, 8, { kernel: 'nearest', size: { width: 12, height: 8 } });
    expectLevels(await read(larger, raw(6, 4, 3, speckled).png().toBuffer()), 12, 8, blocks);
  });

  const smooth: Level = (x, y, channel) =>
    Math.round(127 + 60 * Math.sin((x + 7 * channel) / 5) + 60 * Math.cos(y / 7 + x / 11));
  const smoothRows = Array.from({ length: 64 }, (_, y) =>
    Array.from({ length: 64 }, (__, x) => smooth(x, y, 0)),
  );
  const resized = async (kernel: 'bilinear' | 'bicubic', edge: number) => {
    const recipe = plain(edge, edge, { kernel, size: { width: edge, height: edge } });
    return read(recipe, raw(64, 64, 3, smooth).png().toBuffer());
  };

  it.each([
    ['bilinear', 24],
    ['bilinear', 40],
    ['bicubic', 24],
    ['bicubic', 30],
  ] as const)('%s from 64 to %i: within 3 levels of the plain algorithm', async (kernel, edge) => {
    const pixels = await resized(kernel, edge);
    const expected = plainResize(smoothRows, { width: edge, height: edge }, kernel).flat();
    const differences = expected.map((level, at) => Math.abs(level - pixels[at]!));
    expect(Math.max(...differences)).toBeLessThanOrEqual(3);
    expect(differences.reduce((sum, one) => sum + one, 0) / differences.length).toBeLessThan(0.5);
  });

  it.each(['bilinear', 'bicubic'] as const)(
    '%s from 64 to 100: no pixel is displaced by one',
    async (kernel) => {
      const pixels = await resized(kernel, 100);
      const near = (at: number) =>
        [-1, 0, 1].map((by) => Math.min(63, Math.max(0, Math.round(0.64 * at) + by)));
      for (let y = 0; y < 100; y++) {
        for (let x = 0; x < 100; x++) {
          const levels = near(y).flatMap((row) => near(x).map((column) => smooth(column, row, 0)));
          expect(pixels[100 * y + x]).toBeGreaterThanOrEqual(Math.min(...levels) - 1);
          expect(pixels[100 * y + x]).toBeLessThanOrEqual(Math.max(...levels) + 1);
        }
      }
    },
  );
});

describe('refuses', () => {
  const reader = new ImageReader(plain(4, 4, { kernel: 'bicubic', size: 64 }));
  const svg =
    '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><rect width="9" height="9"/></svg>';

  it.each([
    ['text', Buffer.from('hello'), /^it is not a JPEG, PNG, WebP or GIF image/],
    ['SVG', Buffer.from(svg), /^it is not a JPEG, PNG, WebP or GIF image/],
    ['TIFF', raw(6, 4, 3, speckled).tiff().toBuffer(), /^it is not a JPEG, PNG, WebP or GIF image/],
    [
      'a few bytes that claim 3.6 thousand million pixels',
      claimingPng(60_000),
      /^it has 60000 × 60000 pixels; at most/,
    ],
    ['a line that would become thousands of millions of pixels', claimingLine(), /^it is too narrow/],
  ])('%s', async (_, image, message) => {
    await expect(reader.read(await image, STAYS)).rejects.toThrow(message);
  });

  it('an image truncated at any byte', async () => {
    const whole = await raw(64, 64, 3, speckled).png().toBuffer();
    for (let part = 1; part < 10; part++) {
      const cut = whole.subarray(0, Math.floor((whole.length * part) / 10));
      await expect(reader.read(cut, STAYS)).rejects.toThrow(/^it is (damaged or truncated|not a JPEG)/);
    }
  });

  it('a bad image does not affect the next one', async () => {
    const good = await raw(4, 4, 3, speckled).png().toBuffer();
    const [bad, read] = await Promise.allSettled([
      reader.read(Buffer.from('no'), STAYS),
      reader.read(good, STAYS),
    ]);
    expect([bad.status, read.status]).toEqual(['rejected', 'fulfilled']);
  });

  it('skips an image whose client disconnected', async () => {
    const good = await raw(4, 4, 3, speckled).png().toBuffer();
    const caller = new AbortController();
    const first = reader.read(good, STAYS);
    const left = reader.read(Buffer.from('no'), { tenantId: 'a', signal: caller.signal });
    const next = reader.read(good, STAYS);
    caller.abort();
    await expect(left).rejects.toBe(caller.signal.reason);
    expect(await next).toEqual(await first);
  });
});

function pngChunk(type: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), data]);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(data.length);
  const check = Buffer.alloc(4);
  check.writeUInt32BE(crc32(body));
  return Buffer.concat([length, body, check]);
}

function png(width: number, height: number, depth: 8 | 16, rows: Buffer, exif?: Buffer): Buffer {
  const RGB = 2;
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([depth, RGB], 8);
  return Buffer.concat([
    Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]),
    pngChunk('IHDR', header),
    ...(exif === undefined ? [] : [pngChunk('eXIf', exif)]),
    pngChunk('IDAT', deflateSync(rows)),
    pngChunk('IEND', Buffer.alloc(0)),
  ]);
}

/** Rows as PNG stores them, each behind the number of its filter. */
function pngRows(width: number, height: number, depth: 8 | 16, level: Level): Buffer {
  const bytes = depth / 8;
  const rows = Array.from({ length: height }, (_, y) => {
    const row = Buffer.alloc(1 + width * 3 * bytes);
    for (let i = 0; i < width * 3; i++) {
      row.writeUIntBE(level(Math.floor(i / 3), y, i % 3), 1 + bytes * i, bytes);
    }
    return row;
  });
  return Buffer.concat(rows);
}

const sixteenBitPng = (width: number, height: number, level: Level): Buffer =>
  png(width, height, 16, pngRows(width, height, 16, level));

/** With one EXIF entry: tag 0x0112, one short. */
function turnedPng(width: number, height: number, orientation: number, level: Level): Buffer {
  const exif = Buffer.from(`49492a0008000000010012010300010000000${orientation}00000000000000`, 'hex');
  return png(width, height, 8, pngRows(width, height, 8, level), exif);
}

const claimingPng = (edge: number): Buffer => png(edge, edge, 8, Buffer.alloc(1000));

function claimingLine(): Buffer {
  const height = 300_000;
  return png(1, height, 8, Buffer.alloc(4 * height));
}
