import { describe, expect, it } from 'vitest';
import { DRAW_TOKEN, DRAW_XTC, DrawSource, philox } from '../../../origin/sampling/rng.ts';
import { chiSquare, chiSquareLimit } from './chi-square.ts';

describe('Philox4x32-10', () => {
  // Known answers published with the Random123 library.
  it.each([
    [
      [0, 0, 0, 0],
      [0, 0],
      [0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8],
    ],
    [
      [0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff],
      [0xffffffff, 0xffffffff],
      [0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd],
    ],
    [
      [0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344],
      [0xa4093822, 0x299f31d0],
      [0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1],
    ],
  ])('known answer of counter %j', (counter, [key0, key1], expected) => {
    const block = Uint32Array.from(counter);
    philox(block, key0!, key1!);
    expect([...block]).toEqual(expected);
  });
});

const uniform = (seed: number | string, prompt = 0, choice = 0, step = 0, purpose = DRAW_TOKEN): number =>
  new DrawSource({ seed, prompt, choice }).uniform(step, purpose);

describe('draws', () => {
  it('depend on all 64 bits of a seed, which a text or a number gives', () => {
    const seeds = ['9007199254740992', '9007199254740993', '9223372036854775807', '-9223372036854775808'];
    const drawn = seeds.map((seed) => uniform(seed));
    expect(new Set(drawn).size).toBe(seeds.length);
    expect(drawn[0]).toBe(uniform(2 ** 53));
    expect(drawn[3]).toBe(uniform(-(2 ** 63)));
  });

  it('are equal for equal keys and differ if any part of the key differs', () => {
    const keys: Parameters<typeof uniform>[] = [
      [7],
      [8],
      [-7],
      [7 + 2 ** 32],
      [7 + 2 ** 40],
      [-(2 ** 40)],
      [2 ** 53 - 1],
      [2 ** 63],
      [-(2 ** 63)],
      [2 ** 62],
      [0],
      [7, 1],
      [7, 0, 1],
      [7, 0, 0, 1],
      [7, 0, 0, 0, DRAW_XTC],
    ];
    const values = keys.map((key) => uniform(...key));
    expect(keys.map((key) => uniform(...key))).toEqual(values);
    // 2^63 and −2^63 are the same 64 bits; only the latter is an int64.
    expect(new Set(values).size).toBe(keys.length - 1);
  });

  it('lie in [0, 1) with 53 bits', () => {
    for (let step = 0; step < 2000; step++) {
      const value = uniform(3, 0, 0, step);
      expect(value >= 0 && value < 1 && Number.isInteger(value * 2 ** 53)).toBe(true);
    }
  });

  const along: [string, (i: number) => number][] = [
    ['steps', (i) => uniform(42, 0, 0, i)],
    ['choices', (i) => uniform(42, 0, i, 0)],
    ['prompts', (i) => uniform(42, i, 0, 0)],
    ['seeds', (i) => uniform(i)],
    ['seeds 2^32 apart', (i) => uniform(i * 2 ** 32)],
  ];
  it.each(along)('are uniform and uncorrelated along %s', (_, draw) => {
    const n = 20_000;
    const values = Array.from({ length: n }, (_, i) => draw(i));
    const single = new Array<number>(64).fill(0);
    const pairs = new Array<number>(64).fill(0);
    for (let i = 0; i < n; i++) {
      single[Math.floor(values[i]! * 64)]!++;
      if (i > 0) pairs[Math.floor(values[i - 1]! * 8) * 8 + Math.floor(values[i]! * 8)]!++;
    }
    const flat = new Array<number>(64).fill(1 / 64);
    expect(chiSquare(single, flat)).toBeLessThan(chiSquareLimit(63));
    expect(chiSquare(pairs, flat)).toBeLessThan(chiSquareLimit(63));
  });
});
