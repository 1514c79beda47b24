import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Healing } from '../../../../origin/engine/text/healing.ts';
import { healingStart } from '../../../../origin/request/token-healing.ts';
import { mulberry32, runs } from '../../../support/random.ts';
import { enumerateNextBytes, nextBytesOf } from '../support/healing-oracle.ts';
import { bytesOfToken, EOS, TOKEN_BYTES, VOCABULARY } from '../support/vocabulary.ts';

const row = (seed: number) => {
  const random = mulberry32(seed);
  return Float32Array.from({ length: VOCABULARY }, () => 6 * random());
};

const prompts = fc.array(fc.nat(11), { minLength: 2, maxLength: 12 }).map((ids) => Int32Array.from(ids));

describe('token healing', () => {
  it('gives the byte after the prompt the probability that an enumeration of all tokens gives it', () => {
    let healed = 0;
    fc.assert(
      fc.property(prompts, fc.nat(1e6), (tokens, seed) => {
        const rowAt = (length: number) => row(seed + length);
        const from = healingStart(tokens, 0, TOKEN_BYTES);
        if (from === null) return;
        healed++;
        const healing = new Healing(tokens, from);
        for (let at = from; at < tokens.length; at++) healing.add(rowAt(at));
        const actual = nextBytesOf(
          healing.steps(TOKEN_BYTES, () => true),
          rowAt(tokens.length),
          TOKEN_BYTES,
        );
        const expected = enumerateNextBytes(tokens, 8, rowAt, TOKEN_BYTES);
        expect([...actual.keys()].toSorted()).toEqual([...expected.keys()].toSorted());
        for (const [byte, mass] of expected) expect(actual.get(byte)).toBeCloseTo(mass, 5);
      }),
      { numRuns: runs(300) },
    );
    expect(healed).toBeGreaterThan(runs(200));
  });

  it('draws only tokens whose text goes on as allowed', () => {
    const tokens = Int32Array.of(2, 0);
    const healing = new Healing(tokens, 1);
    healing.add(row(1));
    const [step] = healing.steps(TOKEN_BYTES, ([first]) => first === 0x62);
    const allowed = Array.from({ length: VOCABULARY }, (_, id) => id).filter(
      (id) => ((step!.mask[id >>> 5]! >>> (id & 31)) & 1) === 1,
    );
    const texts = allowed.map((id) => String.fromCharCode(...bytesOfToken(id)));
    expect(texts).toEqual(['a', 'ab', 'abc', 'aba', 'abca']);
  });

  it('keeps the first token, special tokens and what stands before them', () => {
    expect(healingStart(Int32Array.of(0), 0, TOKEN_BYTES)).toBeNull();
    expect(healingStart(Int32Array.of(0, EOS), 0, TOKEN_BYTES)).toBeNull();
    expect(healingStart(Int32Array.of(0, EOS, 0), 0, TOKEN_BYTES)).toBe(2);
    expect(healingStart(Int32Array.of(2, 0, 1), 0, TOKEN_BYTES)).toBe(1);
    expect(healingStart(Int32Array.of(2, 2, 0, 1), 0, TOKEN_BYTES)).toBe(1);
    expect(healingStart(Int32Array.of(2, 2, 0, 1), 2, TOKEN_BYTES)).toBe(2);
  });
});
