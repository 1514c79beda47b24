import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { NoCandidatesError } from '../../../origin/sampling/argmax.ts';
import { DRAW_TOKEN, DRAW_XTC, DrawSource } from '../../../origin/sampling/rng.ts';
import { Sampler } from '../../../origin/sampling/sampler.ts';
import { TokenHistory } from '../../../origin/sampling/token-history.ts';
import { NEUTRAL_SAMPLING, type SamplingParameters } from '../../../shared/sampling.ts';
import { runs } from '../../support/random.ts';
import { anyHistory, anyLogits, anyParameters } from './arbitraries.ts';
import { type Outcome, sampleOnce, type Trial, vocabularyOf, workspaceOf } from './one-token.ts';
import { distribution, drawn, processed, type Share, type Situation } from './reference.ts';

/** Up to several blocks of 128 tokens. */
const SIZES = [1, 2, 5, 33, 70, 300];

const anySituation = fc.constantFrom(...SIZES).chain((size) =>
  fc.record({
    parameters: anyParameters(size),
    logits: anyLogits(size),
    prompt: anyHistory(size, 12),
    generated: anyHistory(Math.min(size, 4), 30),
    mask: fc.option(fc.uniqueArray(fc.nat(size - 1), { minLength: 1, maxLength: size }), { freq: 4 }),
    forbidden: fc.array(fc.nat(size - 1), { maxLength: 2 }),
    seed: fc.maxSafeInteger(),
    step: fc.nat(100_000),
  }),
);

function truncates({ topK, topP, minP, typicalP, topNSigma, ...s }: SamplingParameters): boolean {
  const xtc = s.xtcProbability > 0 && s.xtcThreshold <= 0.5;
  return topK > 0 || topP < 1 || minP > 0 || typicalP < 1 || topNSigma > 0 || xtc;
}

/** Probabilities near the end of float64's range may be rounded to zero. */
const possible = ({ p }: Share): boolean => p > 1e-250;

type Case = Trial & Pick<Situation, 'parameters' | 'logits' | 'prompt' | 'generated' | 'mask'>;

function compare(trial: Case): void {
  const { seed = 1, step = 0 } = trial;
  const situation = { forbidden: [], badSequences: [], breakers: [], ...trial };
  if (processed(situation).every((logit) => logit === -Infinity)) {
    expect(() => sampleOnce(trial)).toThrow(NoCandidatesError);
    return;
  }
  const draws = new DrawSource({ seed, prompt: 0, choice: 0 });
  const expected = distribution(situation, draws.uniform(step, DRAW_XTC));
  const outcome: Outcome = sampleOnce(trial);
  expect(outcome.token).toBe(drawn(expected, draws.uniform(step, DRAW_TOKEN)));
  const greedy = outcome.kept.length === 0;
  if (truncates(situation.parameters) && !greedy) {
    const [found, wanted] = [outcome.kept.filter(possible), expected.filter(possible)];
    expect(found.map(({ id }) => id)).toEqual(wanted.map(({ id }) => id));
    for (const [i, { p }] of found.entries()) expect(p).toBeCloseTo(wanted[i]!.p, 9);
  }
}

describe('compared with the plain reference, a sampler', () => {
  it('keeps the same tokens with the same probabilities and draws the same one, with all samplers combined', () => {
    fc.assert(fc.property(anySituation, compare), { numRuns: runs(2000) });
  });

  it('does so for vocabularies of thousands, of which few tokens are gathered', () => {
    const size = 3000;
    const scaled = fc.tuple(anyLogits(40), fc.integer({ min: 1, max: 9 }), fc.constantFrom(0, 1e-3, 0.37));
    const wide = scaled.map(([pattern, stride, slope]) =>
      Array.from({ length: size }, (_, id) =>
        Math.fround(pattern[(id * stride) % pattern.length]! + (slope * (id % 97)) / stride),
      ),
    );
    const situation = fc.record({
      parameters: anyParameters(size),
      logits: wide,
      prompt: anyHistory(size, 20),
      generated: anyHistory(size, 20),
      mask: fc.constant(null),
      seed: fc.maxSafeInteger(),
    });
    fc.assert(fc.property(situation, compare), { numRuns: runs(100), endOnFailure: true });
  });
});

it('draws as the reference does if XTC is the only truncation', () => {
  const lone = fc.record({
    temperature: fc.constantFrom(0.3, 0.7, 1, 2),
    xtcProbability: fc.constantFrom(0.5, 1),
    xtcThreshold: fc.constantFrom(0.001, 0.02, 0.1, 0.25, 0.5, 0.6),
    minKeep: fc.constantFrom(0, 2, 30),
  });
  const situation = anySituation.chain((trial) =>
    lone.map((changes) => ({ ...trial, parameters: { ...NEUTRAL_SAMPLING, ...changes } })),
  );
  fc.assert(fc.property(situation, compare), { numRuns: runs(1000) });
});

it('agrees with the reference while its history grows', () => {
  const generation = fc.record({
    parameters: anyParameters(8),
    window: fc.integer({ min: 1, max: 6 }),
    prompt: anyHistory(8, 5),
    seed: fc.maxSafeInteger(),
    rows: fc.array(anyLogits(8), { minLength: 1, maxLength: 20 }),
  });
  fc.assert(
    fc.property(generation, ({ window, prompt, seed, rows, ...trial }) => {
      const parameters = {
        ...trial.parameters,
        repetitionPenalty: 1.7,
        presencePenalty: 0.5,
        repeatLastN: window,
        logitBias: [],
        allowedTokenIds: null,
      };
      const draws = new DrawSource({ seed, prompt: 0, choice: 0 });
      const { tokenBytes } = vocabularyOf([...'abcdefgh']);
      const workspace = workspaceOf(8);
      const sampler = new Sampler(parameters, { seed, prompt: 0, choice: 0 }, tokenBytes, workspace);
      const history = new TokenHistory(Int32Array.from(prompt), prompt.length + rows.length);
      const generated: number[] = [];
      for (const [step, logits] of rows.entries()) {
        const lists = { mask: null, forbidden: [], badSequences: [], breakers: [] };
        const situation = { parameters, logits, prompt, generated, ...lists };
        const shares = distribution(situation, draws.uniform(step, DRAW_XTC));
        const token = sampler.sample(Float32Array.from(logits), history, step, null, []);
        expect(token).toBe(drawn(shares, draws.uniform(step, DRAW_TOKEN)));
        generated.push(token);
        history.push(token);
      }
    }),
    { numRuns: runs(300) },
  );
});

it('draws the token that XTC keeps even if its probability underflows to zero', () => {
  const parameters = { ...NEUTRAL_SAMPLING, temperature: 0.01, xtcProbability: 1, xtcThreshold: 0 };
  const identity = { seed: 0, prompt: 0, choice: 0 };
  const sampler = new Sampler(parameters, identity, vocabularyOf([...'abcd']).tokenBytes, workspaceOf(4));
  const logits = Float32Array.of(0, 9, -1, 0);
  const history = new TokenHistory(Int32Array.of(), 1);
  // Every token reaches a threshold of zero, so only one remains: among equally unlikely ones, the highest
  // id.
  expect(sampler.sample(logits, history, 0, null, [])).toBe(3);
});

it('does not modify the model’s logits', () => {
  fc.assert(
    fc.property(anySituation, (trial) => {
      const row = Float32Array.from(trial.logits);
      const frozen = row.slice();
      try {
        sampleOnce({ ...trial, logits: row });
      } catch (error) {
        expect(error).toBeInstanceOf(NoCandidatesError);
      }
      expect(row).toEqual(frozen);
    }),
    { numRuns: runs(300) },
  );
});
