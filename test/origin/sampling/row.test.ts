import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { InvalidLogitsError, NoCandidatesError } from '../../../origin/sampling/argmax.ts';
import { dynamicTemperature } from '../../../origin/sampling/dynamic-temperature.ts';
import { SimdKernel } from '../../../origin/sampling/kernel/simd-kernel.ts';
import { DRAW_TOKEN, DrawSource } from '../../../origin/sampling/rng.ts';
import { isLargeVocabulary, LOWEST_LOGIT, Row } from '../../../origin/sampling/row.ts';
import type { SamplingParameters } from '../../../shared/sampling.ts';
import { runs } from '../../support/random.ts';
import { anyRow, SIZE } from './any-row.ts';
import { sampleOnce, workspaceOf } from './one-token.ts';
import { softmax, sum } from './reference.ts';

const kernel = new SimdKernel();

function rowOf(logits: Float32Array, coldness: number, sumsInFloat32: boolean): Row {
  const row = new Row(SIZE, kernel, sumsInFloat32);
  row.begin(logits);
  row.coldness = coldness;
  return row;
}

describe('a row', () => {
  it('starts with its largest logit, the lowest id among equals', () => {
    fc.assert(
      fc.property(anyRow, (logits) => {
        const row = new Row(SIZE, kernel, false);
        const highest = Math.max(...logits);
        expect(row.begin(logits)).toBe(logits.indexOf(highest));
        expect(row.highest === highest).toBe(true);
      }),
      { numRuns: runs(200) },
    );
  });

  it('weighs and averages as the softmax does: to float64’s rounding, or with float32 sums within 10⁻⁵', () => {
    fc.assert(
      fc.property(anyRow, fc.constantFrom(0.5, 1, 1 / 0.8, 10), (logits, coldness) => {
        const highest = Math.max(...logits);
        const exponents = Array.from(logits, (z) => (z - highest) * coldness).filter((x) => x > -700);
        const weight = sum(exponents.map(Math.exp));
        const mean = sum(exponents.map((x) => Math.exp(x) * x)) / weight;
        for (const [sumsInFloat32, tolerance] of [
          [false, 1e-11],
          [true, 1e-5],
        ] as const) {
          const row = rowOf(logits, coldness, sumsInFloat32);
          expect(Math.abs(row.weigh() / weight - 1)).toBeLessThan(tolerance);
          expect(Math.abs(row.meanLogWeight() - mean)).toBeLessThan(tolerance * Math.max(1, -mean));
        }
      }),
      { numRuns: runs(300) },
    );
  });

  it('lists the ids whose logits reach a cut that is no float32', () => {
    const anyCut = fc.tuple(fc.nat(SIZE - 1), fc.constantFrom(0, -1e-9, 1e-9, LOWEST_LOGIT));
    fc.assert(
      fc.property(anyRow, anyCut, (logits, [id, beside]) => {
        const logit = Math.max(LOWEST_LOGIT, logits[id]!);
        const cut = beside === LOWEST_LOGIT ? beside : logit + beside * Math.max(1, Math.abs(logit));
        const ids = new Int32Array(SIZE);
        const count = rowOf(logits, 1, false).list(Math.max(LOWEST_LOGIT, cut), ids);
        const expected = Array.from(logits, (z, at) => (z >= cut ? at : -1)).filter((at) => at >= 0);
        expect([...ids.subarray(0, count)]).toEqual(expected.filter((at) => logits[at]! > -Infinity));
      }),
      { numRuns: runs(300) },
    );
  });

  it('is refused if a logit is NaN or +∞, or if none is finite', () => {
    const bad = fc.constantFrom(Number.NaN, -Number.NaN, Number.POSITIVE_INFINITY);
    fc.assert(
      fc.property(anyRow, fc.nat(SIZE - 1), bad, (logits, id, value) => {
        logits[id] = value;
        expect(() => new Row(SIZE, kernel, false).begin(logits)).toThrow(InvalidLogitsError);
      }),
    );
    const forbidden = new Float32Array(SIZE).fill(-Infinity);
    expect(() => new Row(SIZE, kernel, false).begin(forbidden)).toThrow(NoCandidatesError);
  });

  it('gives the same dynamic temperature with sums in float32, within 10⁻⁵', () => {
    fc.assert(
      fc.property(anyRow, fc.constantFrom(0.5, 1, 2), (logits, exponent) => {
        const [found, expected] = [true, false].map((sumsInFloat32) =>
          dynamicTemperature(rowOf(logits, 1, sumsInFloat32), 0.8, 0.7, exponent),
        );
        expect(Math.abs(found! - expected!)).toBeLessThan(1e-5 ** Math.min(1, exponent));
      }),
    );
  });
});

describe('a sampler with sums in float32', () => {
  const inFloat32 = (logits: Float32Array, parameters: Partial<SamplingParameters>, seed: number) =>
    sampleOnce({ logits, parameters, seed }, workspaceOf(SIZE, true));
  const exact = (logits: Float32Array, parameters: Partial<SamplingParameters>, seed: number) =>
    sampleOnce({ logits, parameters, seed }, workspaceOf(SIZE, false));

  it.each<Partial<SamplingParameters>>([
    { temperature: 0 },
    { topK: 40 },
    { topK: 3, topP: 0.95, minP: 0.05 },
    { topK: 400 },
    { minP: 0.05, temperature: 0.8 },
    { topP: 0.9 },
    { topP: 0.3, temperature: 0.5, minKeep: 3 },
    { topP: 0.999, temperature: 2, minP: 0.001 },
    { topNSigma: 1 },
    { temperature: 0, repetitionPenalty: 1.2, logitBias: [[3, 2]] },
  ])('keeps the same tokens, with the same bits, as in float64: %o', (parameters) => {
    fc.assert(
      fc.property(anyRow, fc.maxSafeInteger(), (row, seed) => {
        const { token, kept } = inFloat32(row, parameters, seed);
        expect({ token, kept }).toEqual({
          token: exact(row, parameters, seed).token,
          kept: exact(row, parameters, seed).kept,
        });
      }),
      { numRuns: runs(60) },
    );
  });

  /**
   * A token less likely than the most likely one by this factor cannot be drawn: its weight is no normal
   * float64.
   */
  const NOTHING = Math.exp(-708);

  it.each([
    { typicalP: 0.9 },
    { typicalP: 0.2, temperature: 0.7 },
    { typicalP: 0.99, temperature: 2, minKeep: 5 },
  ])('keeps the fewest tokens nearest to the entropy, within 10⁻⁵: %o', (parameters) => {
    fc.assert(
      fc.property(anyRow, fc.maxSafeInteger(), (row, seed) => {
        const { typicalP, temperature = 1, minKeep = 1 } = parameters;
        const kept = new Set(inFloat32(row, parameters, seed).kept.map(({ id }) => id));
        const all = softmax([...row], temperature);
        const most = Math.max(...all.map(({ p }) => p));
        const shares = all.filter(({ p }) => p >= most * NOTHING);
        const entropy = sum(shares.map(({ p }) => -p * Math.log(p)));
        const ordered = shares
          .map(({ id, p }) => ({ id, p, distance: Math.abs(-Math.log(p) - entropy) }))
          .toSorted((a, b) => a.distance - b.distance);
        const [inside, outside] = [true, false].map((is) => ordered.filter(({ id }) => kept.has(id) === is));
        const last = inside!.at(-1)!;
        expect(last.distance).toBeLessThan((outside![0]?.distance ?? Infinity) * (1 + 1e-6) + 1e-5);
        const mass = sum(inside!.map(({ p }) => p));
        if (outside!.length > 0) expect(mass).toBeGreaterThan(typicalP - 1e-5);
        if (kept.size > minKeep) expect(mass - last.p).toBeLessThan(typicalP + 1e-5);
      }),
      { numRuns: runs(150) },
    );
  });

  /** The tokens' weights without what XTC removes; null if rounding decides its threshold. */
  function weightsOf(row: Float32Array, temperature: number, threshold: number): number[] | null {
    const shares = softmax([...row], temperature);
    if (shares.some(({ p }) => Math.abs(p - threshold) < 1e-5)) return null;
    const reaching = shares.filter(({ p }) => p > threshold);
    const least = Math.min(...reaching.map(({ p }) => p));
    const spared = reaching.findLast(({ p }) => p === least)?.id;
    const weights = new Array<number>(SIZE).fill(0);
    for (const { id, p } of shares) if (p < threshold || id === spared) weights[id] = p;
    return weights;
  }

  it.each([
    { temperature: 0.8 },
    { temperature: 1 },
    { temperature: 2 },
    { temperature: 1, xtcProbability: 1, xtcThreshold: 0.1 },
    { temperature: 1, xtcProbability: 1, xtcThreshold: 0.004 },
    { temperature: 0.5, xtcProbability: 1, xtcThreshold: 0.01, minKeep: 3 },
  ])(
    'draws from the whole softmax, without XTC’s top choices, by the inverse CDF within 10⁻⁵: %o',
    (parameters) => {
      const { temperature, xtcThreshold = 2, minKeep = 1 } = parameters;
      fc.assert(
        fc.property(anyRow, fc.maxSafeInteger(), (row, seed) => {
          const weights = weightsOf(row, temperature, xtcThreshold);
          fc.pre(weights !== null && weights.filter((weight) => weight > 0).length >= minKeep);
          const { token } = inFloat32(row, parameters, seed);
          const uniform = new DrawSource({ seed, prompt: 0, choice: 0 }).uniform(0, DRAW_TOKEN);
          const total = weights.reduce((sum, weight) => sum + weight, 0);
          const before = weights.slice(0, token).reduce((sum, weight) => sum + weight, 0) / total;
          expect(weights[token]).toBeGreaterThan(0);
          expect(before).toBeLessThan(uniform + 1e-5);
          expect(before + weights[token]! / total).toBeGreaterThan(uniform - 1e-5);
        }),
        { numRuns: runs(150) },
      );
    },
  );
});

it('calls vocabularies above 32,768 large', () => {
  expect([32_768, 32_769].map(isLargeVocabulary)).toEqual([false, true]);
});
