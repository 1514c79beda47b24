import { describe, expect, it } from 'vitest';
import { dynamicTemperature } from '../../../origin/sampling/dynamic-temperature.ts';
import { tokenLogprob } from '../../../origin/sampling/logprobs.ts';
import { Mirostat, rankBound, zipfExponent } from '../../../origin/sampling/truncation/mirostat.ts';
import { sigmaCut } from '../../../origin/sampling/truncation/shortlist.ts';
import { NEUTRAL_SAMPLING, type SamplingParameters } from '../../../shared/sampling.ts';
import { sampleOnce, workspaceOf } from './one-token.ts';
import type { Share } from './reference.ts';

/** Vectors computed by an independent implementation, printed with six decimals. */

const FOUR = [0.4, 0.3, 0.2, 0.1];

function expectKept(kept: readonly Share[], expected: Readonly<Record<number, number>>): void {
  expect(kept.map(({ id }) => id)).toEqual(Object.keys(expected).map(Number));
  for (const { id, p } of kept) expect(p).toBeCloseTo(expected[id]!, 6);
}

function keptOf(probabilities: readonly number[], parameters: Partial<SamplingParameters>): Share[] {
  return sampleOnce({ logits: probabilities.map(Math.log), parameters }).kept;
}

describe('penalties', () => {
  const z = [2, -1, 0.5, 0, 1];
  const trial = { logits: z, prompt: [0, 1], generated: [2, 2, 0] };
  const penalties = { repetitionPenalty: 1.5, frequencyPenalty: 0.5, presencePenalty: 0.25 };

  it('repetition first, frequency and presence on generated tokens', () => {
    const { scores } = sampleOnce({ ...trial, parameters: penalties });
    [0.583333, -1.5, -0.916667, 0, 1].forEach((value, id) => {
      expect(scores[id]).toBeCloseTo(value, 6);
    });
  });

  it('frequency and presence on prompt and generated tokens together', () => {
    const { scores } = sampleOnce({ ...trial, parameters: { ...penalties, penaltyScope: 'all' } });
    [0.083333, -2.25, -0.916667, 0, 1].forEach((value, id) => {
      expect(scores[id]).toBeCloseTo(value, 6);
    });
  });

  it('raw logprobs ignore penalties', () => {
    const workspace = workspaceOf(5);
    [-0.574438, -3.574438, -2.074438, -2.574438, -1.574438].forEach((value, id) => {
      expect(tokenLogprob(Float32Array.from(z), id, 0, workspace).logprob).toBeCloseTo(value, 6);
    });
  });
});

describe('truncation of p = [.4, .3, .2, .1]', () => {
  const all = { 0: 0.4, 1: 0.3, 2: 0.2, 3: 0.1 };
  const three = { 0: 0.444444, 1: 0.333333, 2: 0.222222 };
  const two = { 0: 0.571429, 1: 0.428571 };
  it.each([
    ['top_p .4', { topP: 0.4 }, { 0: 1 }],
    ['top_p .7', { topP: 0.7 }, two],
    ['top_p .71', { topP: 0.71 }, three],
    ['top_p .95', { topP: 0.95 }, all],
    ['min_p .25 keeps the boundary', { minP: 0.25 }, all],
    ['min_p .26', { minP: 0.26 }, three],
    ['min_p .74', { minP: 0.74 }, two],
    ['min_p .76', { minP: 0.76 }, { 0: 1 }],
    ['typical .5', { typicalP: 0.5 }, three],
    ['XTC at .09', { xtcProbability: 1, xtcThreshold: 0.09 }, { 3: 1 }],
    ['XTC at .15', { xtcProbability: 1, xtcThreshold: 0.15 }, { 2: 0.666667, 3: 0.333333 }],
    ['XTC at .25', { xtcProbability: 1, xtcThreshold: 0.25 }, { 1: 0.5, 2: 0.333333, 3: 0.166667 }],
    ['XTC at .35 leaves all', { xtcProbability: 1, xtcThreshold: 0.35 }, all],
  ])('%s', (_, parameters, expected) => {
    expectKept(keptOf(FOUR, parameters), expected);
  });
});

it('typical .5 of [.4, .2, .2, .2] drops the most likely token', () => {
  expectKept(keptOf([0.4, 0.2, 0.2, 0.2], { typicalP: 0.5 }), { 1: 0.333333, 2: 0.333333, 3: 0.333333 });
});

it('typical .5 of [.97, .01, .01, .01] keeps only the most likely token', () => {
  expectKept(keptOf([0.97, 0.01, 0.01, 0.01], { typicalP: 0.5 }), { 0: 1 });
});

it('top-nσ 1 of [3, 2, 1, 0, −4]: σ = 2.416609 keeps the first three', () => {
  const logits = [3, 2, 1, 0, -4];
  const { row } = workspaceOf(logits.length);
  row.begin(Float32Array.from(logits));
  expect(3 - sigmaCut(row, 1)).toBeCloseTo(2.416609, 6);
  expect(sampleOnce({ logits, parameters: { topNSigma: 1 } }).kept.map(({ id }) => id)).toEqual([0, 1, 2]);
});

it('dynamic temperature 1 ± .5 on [.4, .3, .2, .1] is 1.423220', () => {
  const { row } = workspaceOf(4);
  row.begin(Float32Array.from(FOUR.map(Math.log)));
  expect(dynamicTemperature(row, 1, 0.5, 1)).toBeCloseTo(1.42322, 6);
});

describe('DRY', () => {
  const penaltiesOf = (history: number[], parameters: Partial<SamplingParameters>, texts?: string[]) => {
    const logits = new Array<number>(10).fill(0);
    const scores = sampleOnce({ logits, prompt: history, parameters, ...(texts && { texts }) }).scores;
    return Object.fromEntries(scores.flatMap((score, id) => (score === 0 ? [] : [[id, score]])));
  };
  const on = { dryMultiplier: 1, dryBase: 1.75, dryAllowedLength: 2, drySequenceBreakers: [] };
  const [a, b, c, y] = [0, 1, 2, 3];

  it('a b c c b c y a b c: c −1.75, y −1', () => {
    expect(penaltiesOf([a, b, c, c, b, c, y, a, b, c], on)).toEqual({ [c]: -1.75, [y]: -1 });
  });

  it('0 1 2 0 1 at base 1.1 over four equal logits: .109232 for token 2', () => {
    const parameters = { ...on, dryBase: 1.1, topK: 4 };
    const { kept } = sampleOnce({ logits: [0, 0, 0, 0], prompt: [0, 1, 2, 0, 1], parameters });
    expectKept(kept, { 0: 0.296923, 1: 0.296923, 2: 0.109232, 3: 0.296923 });
  });

  it('5 0 1 9 5 0 1: token 9 −1.75; −1 where 5 is a breaker', () => {
    expect(penaltiesOf([5, 0, 1, 9, 5, 0, 1], on)).toEqual({ 9: -1.75 });
    const breaking = { ...on, drySequenceBreakers: ['<5>'] };
    expect(penaltiesOf([5, 0, 1, 9, 5, 0, 1], breaking)).toEqual({ 9: -1 });
  });

  it('nothing where the last token is a breaker', () => {
    const breaking = { ...on, drySequenceBreakers: ['<1>'] };
    expect(penaltiesOf([5, 0, 1, 9, 5, 0, 1], breaking)).toEqual({});
  });

  it('six equal tokens, multiplier .8: −4.2875', () => {
    const scores = penaltiesOf([7, 7, 7, 7, 7, 7], { ...on, dryMultiplier: 0.8 });
    expect(scores).toEqual({ 7: Math.fround(-4.2875) });
  });
});

describe('Mirostat on z = [2, 1, 0, −1, −2], τ = 1, η = .1', () => {
  const drawn = (version: 1 | 2, bound: number, uniform: number) => {
    const workspace = workspaceOf(5);
    workspace.row.begin(Float32Array.of(2, 1, 0, -1, -2));
    const mirostat = new Mirostat(version, { ...NEUTRAL_SAMPLING, mirostatTau: 1, mirostatEta: 0.1 });
    mirostat.bound = bound;
    const token = mirostat.draw(uniform, workspace);
    const { candidates } = workspace;
    const kept = [...candidates.ids.subarray(0, candidates.count)];
    const p = kept.map((_, i) => candidates.weights[i]! / candidates.mass);
    return { token, kept: kept.map((id, i) => ({ id, p: p[i]! })), bound: mirostat.bound };
  };

  it('starts at μ = 2τ', () => {
    expect(new Mirostat(2, { ...NEUTRAL_SAMPLING, mirostatTau: 3 }).bound).toBe(6);
  });

  it('version 2 at μ = 2 keeps the first, S = 0, μ′ = 2.1', () => {
    const { token, kept, bound } = drawn(2, 2, 0.5);
    expectKept(kept, { 0: 1 });
    expect(token).toBe(0);
    expect(bound).toBeCloseTo(2.1, 6);
  });

  it('version 2 at μ = 3 keeps two; drawing the second gives μ′ = 2.910536', () => {
    const { token, kept, bound } = drawn(2, 3, 0.9);
    expectKept(kept, { 0: 0.731059, 1: 0.268941 });
    expect(token).toBe(1);
    expect(bound).toBeCloseTo(2.910536, 6);
  });

  it('version 1 at μ = 2: ŝ = 2.070259, k = 2.219907; drawing the best gives μ′ = 2.054806', () => {
    const weights = Float64Array.from([0, -1, -2, -3, -4], Math.exp);
    expect(zipfExponent(weights)).toBeCloseTo(2.070259, 6);
    const { token, kept, bound } = drawn(1, 2, 0.5);
    expect(kept).toHaveLength(2);
    expect(token).toBe(0);
    expect(bound).toBeCloseTo(2.054806, 6);
  });

  it('version 1 on Zipf’s law with exponent .7 over 50 tokens at μ = 6, τ = 3: 21 tokens, μ′ = 6.051727', () => {
    const logits = Float32Array.from({ length: 50 }, (_, i) => -0.7 * Math.log(i + 1));
    expect(zipfExponent(Float64Array.from(logits, Math.exp))).toBeCloseTo(0.7, 6);
    expect(rankBound(0.7, 6, 50)).toBe(21);
    const mirostat = new Mirostat(1, { ...NEUTRAL_SAMPLING, mirostatTau: 3, mirostatEta: 0.1 });
    const workspace = workspaceOf(50);
    workspace.row.begin(logits);
    expect(mirostat.draw(0, workspace)).toBe(0);
    expect(workspace.candidates.count).toBe(21);
    expect(mirostat.bound).toBeCloseTo(6.051727, 6);
  });
});
