import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { NEUTRAL_SAMPLING } from '../../../shared/sampling.ts';
import { runs } from '../../support/random.ts';
import { anyHistory, anyLogits, anyParameters } from './arbitraries.ts';
import { sampleOnce } from './one-token.ts';
import { processed } from './reference.ts';

const SIZE = 40;
const anyTrial = fc.record({
  parameters: anyParameters(SIZE),
  logits: anyLogits(SIZE),
  generated: anyHistory(SIZE, 20),
});

/** Returns the ids of the largest processed logit, or none if all tokens are forbidden. */
function bestOf(trial: {
  parameters: typeof NEUTRAL_SAMPLING;
  logits: number[];
  generated: number[];
}): number[] {
  const situation = { ...trial, prompt: [], mask: null, forbidden: [], badSequences: [], breakers: [] };
  const z = processed(situation);
  const highest = Math.max(...z);
  return highest === -Infinity ? [] : z.flatMap((value, id) => (value === highest ? [id] : []));
}

describe('greedy sampling', () => {
  it('draws the largest processed logit, the lowest id among equals, for any seed and truncations', () => {
    fc.assert(
      fc.property(anyTrial, fc.maxSafeInteger(), fc.constantFrom(0, 1, 2), (trial, seed, mirostat) => {
        const parameters = { ...trial.parameters, temperature: 9e-6, mirostat } as const;
        const best = bestOf({ ...trial, parameters });
        fc.pre(best.length > 0);
        expect(sampleOnce({ ...trial, parameters, seed }).token).toBe(best[0]);
      }),
      { numRuns: runs(500) },
    );
  });

  it('is the limit of sampling as the temperature approaches zero', () => {
    const apart = fc.shuffledSubarray(
      Array.from({ length: SIZE }, (_, i) => i - 20),
      { minLength: SIZE },
    );
    fc.assert(
      fc.property(apart, fc.maxSafeInteger(), fc.constantFrom(0, 1, 2), (logits, seed, mirostat) => {
        const cold = { ...NEUTRAL_SAMPLING, temperature: 1e-5, mirostat } as const;
        const best = logits.indexOf(19);
        expect(sampleOnce({ logits, seed, parameters: cold }).token).toBe(best);
        expect(sampleOnce({ logits, seed, parameters: { ...cold, topP: 0.9, minP: 0.1 } }).token).toBe(best);
        expect(sampleOnce({ logits, seed, parameters: { temperature: 0, mirostat } }).token).toBe(best);
      }),
      { numRuns: runs(100) },
    );
  });

  it('applies to a dynamic temperature of zero', () => {
    const parameters = { temperature: 1, dynatempRange: 1, topP: 0.9 };
    expect(sampleOnce({ logits: [100, 0, -100], parameters }).token).toBe(0);
  });
});
