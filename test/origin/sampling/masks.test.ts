import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { InvalidLogitsError, NoCandidatesError } from '../../../origin/sampling/argmax.ts';
import { copyMasked } from '../../../origin/sampling/masked-copy.ts';
import { bitsOf, sampleOnce, workspaceOf } from './one-token.ts';

describe('masks', () => {
  it('keep the logits of allowed tokens and set the others to −∞, at sizes around a word of 32', () => {
    const sizes = fc.constantFrom(1, 31, 32, 33, 63, 64, 65, 100);
    const trial = sizes.chain((size) =>
      fc.tuple(fc.constant(size), fc.subarray(Array.from({ length: size }, (_, id) => id))),
    );
    fc.assert(
      fc.property(trial, ([size, mask]) => {
        const logits = Float32Array.from({ length: size }, (_, id) => id - 7);
        const scores = new Float32Array(size).fill(99);
        copyMasked(scores, logits, bitsOf(mask, size));
        expect([...scores]).toEqual([...logits].map((logit, id) => (mask.includes(id) ? logit : -Infinity)));
      }),
    );
  });

  it('allow nothing beyond the vocabulary or beyond their last word', () => {
    const scores = new Float32Array(40);
    const logits = new Float32Array(40).fill(1);
    copyMasked(scores, logits, Uint32Array.of(0, 0xffffffff, 0xffffffff));
    expect([...scores].filter((score) => score === 1)).toHaveLength(8);
    copyMasked(scores, logits, Uint32Array.of(0xffffffff));
    expect([...scores].filter((score) => score === 1)).toHaveLength(32);
  });

  it('do not use ids outside the vocabulary, nor do other lists of ids', () => {
    const parameters = {
      temperature: 0,
      allowedTokenIds: [1, 2, 900],
      logitBias: [
        [900, 5],
        [901, null],
        [2, null],
      ] as [number, number | null][],
    };
    expect(sampleOnce({ logits: [3, 1, 2], parameters, forbidden: [0, 902] }).token).toBe(1);
  });

  it('and lists of allowed ids both hold', () => {
    const logits = [1, 2, 3, 4];
    const parameters = { temperature: 0, allowedTokenIds: [0, 1, 3] };
    expect(sampleOnce({ logits, parameters, mask: [0, 1, 2] }).token).toBe(1);
    expect(() => sampleOnce({ logits, parameters, mask: [2] })).toThrow(NoCandidatesError);
  });
});

describe('rows without a distribution', () => {
  const some = { temperature: [0, 1], topK: [0, 2], topP: [0.5, 1], mirostat: [0, 1, 2] } as const;
  const combinations = some.temperature.flatMap((temperature) =>
    some.topK.flatMap((topK) =>
      some.topP.flatMap((topP) => some.mirostat.map((mirostat) => ({ temperature, topK, topP, mirostat }))),
    ),
  );

  it.each([Number.NaN, Number.POSITIVE_INFINITY])('with %d at any position are rejected', (bad) => {
    for (const parameters of combinations) {
      for (const id of [0, 1, 2]) {
        expect(() => sampleOnce({ logits: [1, 2, 3].with(id, bad), parameters })).toThrow(InvalidLogitsError);
      }
    }
  });

  it('whose tokens are all forbidden are rejected', () => {
    const nothing = -Infinity;
    for (const parameters of combinations) {
      expect(() => sampleOnce({ logits: [nothing, nothing], parameters })).toThrow(NoCandidatesError);
      expect(() => sampleOnce({ logits: [1, 2], parameters, mask: [] })).toThrow(NoCandidatesError);
      expect(() => sampleOnce({ logits: [1, 2], parameters, forbidden: [0, 1] })).toThrow(NoCandidatesError);
      expect(() => sampleOnce({ logits: [1, nothing], parameters, mask: [1] })).toThrow(NoCandidatesError);
    }
  });

  it('of another size than the workspace are rejected', () => {
    const workspace = workspaceOf(4);
    expect(() => sampleOnce({ logits: [1, 2, 3], parameters: {} }, workspace)).toThrow(RangeError);
  });
});
