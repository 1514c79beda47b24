import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { InvalidLogitsError, NoCandidatesError } from '../../../origin/sampling/argmax.ts';
import { exponential } from '../../../origin/sampling/exponential.ts';
import { tokenLogprob } from '../../../origin/sampling/logprobs.ts';
import { Sampler } from '../../../origin/sampling/sampler.ts';
import { NEUTRAL_SAMPLING, type SamplingParameters } from '../../../shared/sampling.ts';
import { runs } from '../../support/random.ts';
import { anyLogits } from './arbitraries.ts';
import { bitsOf, historyOf, vocabularyOf, workspaceOf } from './one-token.ts';
import { sum } from './reference.ts';

describe('the exponential', () => {
  it('is within 3e-13 of Math.exp for every negative number, 1 at 0 and 0 far below', () => {
    const anyNegative = fc.double({ min: -707, max: 0, noNaN: true });
    fc.assert(
      fc.property(anyNegative, (x) => {
        expect(Math.abs(exponential(x) / Math.exp(x) - 1)).toBeLessThan(3e-13);
      }),
      { numRuns: runs(5000) },
    );
    expect([0, -0, -709, -1e300, -Infinity].map(exponential)).toEqual([1, 1, 0, 0, 0]);
  });
});

describe('logprobs', () => {
  const anyRow = fc.constantFrom(1, 3, 50, 300).chain((size) => fc.tuple(anyLogits(size), fc.nat(size - 1)));

  it('are the log-softmax in float32, best first, lower id first among equals, with equal bits in both results', () => {
    fc.assert(
      fc.property(anyRow, fc.nat(60), ([logits, id], topLogprobs) => {
        const row = Float32Array.from(logits);
        const workspace = workspaceOf(row.length);
        const { logprob, top } = tokenLogprob(row, id, topLogprobs, workspace);
        const highest = Math.max(...logits);
        const normalizer = highest + Math.log(sum(logits.map((z) => Math.exp(z - highest))));
        const expected = Math.max(-9999, logits[id]! - normalizer);
        expect(Math.abs(logprob - expected)).toBeLessThanOrEqual(2 ** -23 * Math.max(1, Math.abs(expected)));
        expect(Math.fround(logprob)).toBe(logprob);
        const ordered = logits
          .map((z, token) => ({ z, token }))
          .sort((a, b) => b.z - a.z || a.token - b.token);
        expect(top.map(([token]) => token)).toEqual(ordered.slice(0, topLogprobs).map(({ token }) => token));
        const listed = ordered.filter(({ token }) => token % 3 === id % 3).map(({ token }) => token);
        const ascending = listed.toSorted((a, b) => a - b);
        const ofListed = tokenLogprob(row, id, ascending, workspace);
        expect([ofListed.logprob, ofListed.top.map(([token]) => token)]).toEqual([logprob, listed]);
        for (const [token, value] of [...top, ...ofListed.top]) {
          expect(value).toBe(tokenLogprob(row, token, 0, workspace).logprob);
        }
        const inFloat32 = tokenLogprob(row, id, topLogprobs, workspaceOf(row.length, true));
        expect(inFloat32.top.map(([token]) => token)).toEqual(top.map(([token]) => token));
        // Only whole blocks are summed in float32: 44 roundings each, and those of the exponents.
        const sumError = row.length < 128 ? 0 : 60 * 2 ** -24;
        expect(Math.abs(inFloat32.logprob - expected)).toBeLessThanOrEqual(
          sumError + 2 ** -23 * Math.max(1, Math.abs(expected)),
        );
        expect(row).toEqual(Float32Array.from(logits));
      }),
      { numRuns: runs(500) },
    );
  });

  it.each<Partial<SamplingParameters>>([
    { temperature: 0 },
    { temperature: 0, repetitionPenalty: 2 },
    { temperature: 0.8 },
    { temperature: 1 },
    { temperature: 1, logitBias: [[0, 3]] },
    { topP: 0.9 },
    { topK: 2, temperature: 0.5 },
  ])('have the same bits with and without sampling before: %o', (parameters) => {
    fc.assert(
      fc.property(anyRow, fc.nat(60), fc.boolean(), ([logits, id], topLogprobs, masked) => {
        const row = Float32Array.from(logits);
        const workspace = workspaceOf(row.length, true);
        const texts = logits.map((_, token) => `<${token}>`);
        const sampler = new Sampler(
          { ...NEUTRAL_SAMPLING, ...parameters },
          { seed: 1, prompt: 0, choice: 0 },
          vocabularyOf(texts).tokenBytes,
          workspace,
        );
        const mask = masked ? bitsOf([id], row.length) : null;
        fc.pre(!masked || logits[id]! > -Infinity);
        sampler.sample(row, historyOf([0], []), 0, mask, []);
        const after = tokenLogprob(row, id, topLogprobs, workspace, sampler.sampledRaw);
        expect(after).toEqual(tokenLogprob(row, id, topLogprobs, workspaceOf(row.length, true)));
      }),
      { numRuns: runs(100) },
    );
  });

  it('sum to 1 as probabilities', () => {
    const row = Float32Array.from({ length: 2000 }, (_, i) => ((i * 7919) % 1000) / 60);
    const { top } = tokenLogprob(row, 0, 2000, workspaceOf(2000));
    expect(sum(top.map(([, value]) => Math.exp(value)))).toBeCloseTo(1, 6);
  });

  it('of −∞ and of anything below −9999 are −9999', () => {
    const row = Float32Array.of(0, -9998, -10_000, -Infinity);
    const { top } = tokenLogprob(row, 0, 4, workspaceOf(4));
    expect(top).toEqual([
      [0, 0],
      [1, -9998],
      [2, -9999],
      [3, -9999],
    ]);
  });

  it('of a row without a distribution are rejected', () => {
    const workspace = workspaceOf(2);
    expect(() => tokenLogprob(Float32Array.of(0, Number.NaN), 0, 1, workspace)).toThrow(InvalidLogitsError);
    expect(() => tokenLogprob(Float32Array.of(-Infinity, -Infinity), 0, 1, workspace)).toThrow(
      NoCandidatesError,
    );
  });
});
