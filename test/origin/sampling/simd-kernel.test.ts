import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { dynamicTemperature } from '../../../origin/sampling/dynamic-temperature.ts';
import { InvalidLogitsError, NoCandidatesError } from '../../../origin/sampling/errors.ts';
import { exponential } from '../../../origin/sampling/exponential.ts';
import { isLargeVocabulary, SimdKernel } from '../../../origin/sampling/kernel/simd-kernel.ts';
import { DRAW_TOKEN, DrawSource } from '../../../origin/sampling/rng.ts';
import { RowBlocks } from '../../../origin/sampling/row-blocks.ts';
import { LOWEST_LOGIT } from '../../../origin/sampling/truncation/gather.ts';
import { SamplerWorkspace } from '../../../origin/sampling/workspace.ts';
import type { SamplingParameters } from '../../../shared/sampling.ts';
import { anyColdness, anyRow, reduce, SIZE } from './any-row.ts';
import { sampleOnce } from './one-token.ts';
import { softmax, sum } from './reference.ts';

const kernel = new SimdKernel();
const MOST_ROWS = 5;
const MOST_OFFSET = 15;
const inPlace = kernel.allocate(MOST_OFFSET + MOST_ROWS * SIZE);

/** Of float32, relative. */
const ROUNDING = 2 ** -24;
/** What a block's sum may be off by, of itself: 33 additions are rounded, and a power of two is right to ten roundings. */
const SUMMED = 44 * ROUNDING;
/** The same of the exponents' size: a difference is rounded, the coldness twice, its logarithm's base and the product. */
const OF_EXPONENTS = 5 * ROUNDING;

/** Σ e^x, Σ e^x |x| and Σ e^x x² of some logits, x = (z − highest) · coldness. */
function momentsOf(logits: Float32Array, highest: number, coldness: number): [number, number, number] {
  const exponents = Array.from(logits, (z) => (highest - z) * coldness).filter((x) => x < 700);
  const momentOf = (power: number) => sum(exponents.map((x) => Math.exp(-x) * x ** power));
  return [momentOf(0), momentOf(1), momentOf(2)];
}

describe('blocks of a row', () => {
  it('have the same bits alone and among other rows, wherever in memory the row lies, read in place or copied', () => {
    const rows = fc.array(anyRow, { minLength: 1, maxLength: MOST_ROWS });
    fc.assert(
      fc.property(rows, fc.nat(MOST_OFFSET), anyColdness, (company, offset, coldness) => {
        const memory = inPlace;
        for (const [r, row] of company.entries()) memory.set(row, offset + r * SIZE);
        const shared = new RowBlocks(SIZE, kernel);
        for (const [r, row] of company.entries()) {
          const start = offset + r * SIZE;
          const together = reduce(shared, memory.subarray(start, start + SIZE), coldness);
          expect(together).toEqual(reduce(new RowBlocks(SIZE, kernel), row.slice(), coldness));
        }
      }),
      { numRuns: 200 },
    );
  });

  it('have exactly their largest logits and, to float32’s rounding, their share of the softmax', () => {
    fc.assert(
      fc.property(anyRow, anyColdness, (row, coldness) => {
        const { best, maxima, sums, total } = reduce(new RowBlocks(SIZE, kernel), row, coldness);
        const highest = Math.max(...row);
        expect(best).toBe(row.indexOf(highest));
        for (const [block, found] of sums.entries()) {
          const logits = row.subarray(block * 128, (block + 1) * 128);
          expect(maxima[block]! - Math.max(...logits) || 0).toBe(0);
          const [weight, size] = momentsOf(logits, highest, coldness);
          expect(Math.abs(found - weight)).toBeLessThanOrEqual(SUMMED * weight + OF_EXPONENTS * size + 1e-35);
        }
        const [weight, size] = momentsOf(row, highest, coldness);
        expect(Math.abs(total - weight)).toBeLessThanOrEqual(SUMMED * weight + OF_EXPONENTS * size);
      }),
      { numRuns: 300 },
    );
  });

  it('have the mean exponent of the softmax, to float32’s rounding', () => {
    fc.assert(
      fc.property(anyRow, anyColdness, (row, coldness) => {
        const blocks = new RowBlocks(SIZE, kernel);
        const highest = row[blocks.argmax(row)]!;
        const [weight, size, square] = momentsOf(row, highest, coldness);
        const mean = size / weight;
        const found = blocks.meanExponent({ logits: row, highest, coldness });
        const tolerance = 2 * SUMMED * mean + OF_EXPONENTS * (square / weight + mean ** 2) + 1e-12;
        expect(Math.abs(found + mean)).toBeLessThan(tolerance);
      }),
      { numRuns: 300 },
    );
  });

  it('have the deviations from the largest logit, to float64’s precision', () => {
    fc.assert(
      fc.property(anyRow, (row) => {
        const highest = Math.max(...row);
        const below = Array.from(row, (z) => highest - z).filter((x) => x < Infinity);
        const expected = [below.length, sum(below), sum(below.map((x) => x * x))];
        const found = new RowBlocks(SIZE, kernel).deviations({ logits: row, highest, coldness: 1 });
        expect(found[0]).toBe(below.length);
        for (const [i, x] of expected.entries())
          expect(Math.abs(found[i]! - x)).toBeLessThanOrEqual(1e-13 * x);
      }),
      { numRuns: 200 },
    );
  });

  it('have the sums of what reaches a cut, to float32’s rounding, beside the same sums of all', () => {
    fc.assert(
      fc.property(anyRow, anyColdness, fc.nat(SIZE - 1), (row, coldness, at) => {
        const blocks = new RowBlocks(SIZE, kernel);
        const { highest, sums } = { ...reduce(blocks, row, coldness), highest: blocks.highest };
        // As far below the largest logit as sums are promised.
        const cut = Math.max(row[at]!, highest - 60 / coldness);
        const total = blocks.weighAbove({ logits: row, highest, coldness }, cut);
        expect([...blocks.sums]).toEqual(sums);
        const expected = Array.from({ length: 8 }, (_, block) =>
          sum(
            Array.from(row.subarray(block * 128, (block + 1) * 128), (z) =>
              z >= cut ? Math.exp((z - highest) * coldness) : 0,
            ),
          ),
        );
        const closely = SUMMED + 60 * OF_EXPONENTS;
        for (const [block, weight] of expected.entries())
          expect(Math.abs(blocks.above[block]! - weight)).toBeLessThanOrEqual(closely * weight);
        expect(total).toBe(sum([...blocks.above]));
      }),
      { numRuns: 300 },
    );
  });

  it('list exactly the logits from a cut up to a limit, float32s or not, with the weights that JavaScript gives', () => {
    const anyCut = fc.tuple(
      fc.nat(SIZE - 1),
      fc.constantFrom(0, -1e-9, 1e-9, -Infinity, Infinity, LOWEST_LOGIT),
      fc.boolean(),
    );
    fc.assert(
      fc.property(
        anyRow,
        fc.nat(MOST_OFFSET),
        anyCut,
        fc.oneof(fc.constant(Number.POSITIVE_INFINITY), fc.nat(SIZE - 1)),
        anyColdness,
        (row, offset, [id, beside, copied], end, coldness) => {
          inPlace.set(row, offset);
          const read = copied ? row : inPlace.subarray(offset, offset + SIZE);
          const logit = Math.max(LOWEST_LOGIT, row[id]!);
          const cut = beside === LOWEST_LOGIT ? beside : logit + beside * Math.max(1, Math.abs(logit));
          const limit = end === Number.POSITIVE_INFINITY ? end : row[end]! + 1e-9;
          const ids = new Int32Array(SIZE);
          const blocks = new RowBlocks(SIZE, kernel);
          blocks.argmax(read);
          const weights = new Float64Array(SIZE);
          const begun = { logits: read, highest: blocks.highest, coldness };
          const count = blocks.list(begun, cut, ids, weights, limit);
          const expected = Array.from(row, (z, id) => (z >= cut && z < limit ? id : -1)).filter(
            (id) => id >= 0,
          );
          expect([...ids.subarray(0, count)]).toEqual(expected);
          const expectedWeights = expected.map((id) => exponential((row[id]! - blocks.highest) * coldness));
          expect([...weights.subarray(0, count)]).toEqual(expectedWeights);
        },
      ),
      { numRuns: 300 },
    );
  });

  it('are listed alike where there are more of them than the kernel lists at a time', () => {
    const size = 150 * 128 + 37;
    fc.assert(
      fc.property(anyRow, anyColdness, fc.nat(SIZE - 1), (pattern, coldness, at) => {
        const row = Float32Array.from({ length: size }, (_, id) => pattern[(id * 31) % SIZE]!);
        const listed = (blocks: RowBlocks) => {
          const [ids, weights] = [new Int32Array(size), new Float64Array(size)];
          const highest = row[blocks.argmax(row)]!;
          const cut = Math.max(LOWEST_LOGIT, pattern[at]!);
          const count = blocks.list({ logits: row, highest, coldness }, cut, ids, weights);
          return [ids.subarray(0, count), weights.subarray(0, count)];
        };
        expect(listed(new RowBlocks(size, kernel))).toEqual(listed(new RowBlocks(size, null)));
      }),
      { numRuns: 30 },
    );
  });

  it('betray NaN and +∞ at any position, beside anything', () => {
    const bad = fc.constantFrom(Number.NaN, -Number.NaN, Number.POSITIVE_INFINITY);
    fc.assert(
      fc.property(anyRow, fc.nat(SIZE - 1), bad, (row, id, value) => {
        row[id] = value;
        expect(() => new RowBlocks(SIZE, kernel).argmax(row)).toThrow(InvalidLogitsError);
      }),
      { numRuns: 500 },
    );
  });

  it('without any finite logit are refused', () => {
    const row = new Float32Array(SIZE).fill(-Infinity);
    expect(() => new RowBlocks(SIZE, kernel).argmax(row)).toThrow(NoCandidatesError);
  });
});

it('dynamic temperature is the same from blocks as by ids, within 10⁻⁵', () => {
  fc.assert(
    fc.property(anyRow, fc.constantFrom(0.5, 1, 2), (logits, exponent) => {
      const [blocks, ids] = [new RowBlocks(SIZE, kernel), new RowBlocks(SIZE, null)];
      const row = { logits, highest: logits[blocks.argmax(logits)]!, coldness: 1 };
      const found = dynamicTemperature(row, 0.8, 0.7, exponent, blocks);
      const expected = dynamicTemperature(row, 0.8, 0.7, exponent, ids);
      expect(Math.abs(found - expected)).toBeLessThan(1e-5 ** Math.min(1, exponent));
    }),
  );
});

describe('a sampler with a kernel', () => {
  const inBlocks = (logits: Float32Array, parameters: Partial<SamplingParameters>, seed: number) =>
    sampleOnce({ logits, parameters, seed }, new SamplerWorkspace(SIZE, kernel));
  const byId = (logits: Float32Array, parameters: Partial<SamplingParameters>, seed: number) =>
    sampleOnce({ logits, parameters, seed }, new SamplerWorkspace(SIZE));

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
  ])('takes the same tokens, with the same bits, as without: %o', (parameters) => {
    fc.assert(
      fc.property(anyRow, fc.maxSafeInteger(), (row, seed) => {
        const { token, kept } = inBlocks(row, parameters, seed);
        expect({ token, kept }).toEqual({
          token: byId(row, parameters, seed).token,
          kept: byId(row, parameters, seed).kept,
        });
      }),
      { numRuns: 60 },
    );
  });

  /** What is less likely than the most likely token by more than this cannot be drawn: its weight is no normal double. */
  const NOTHING = Math.exp(-708);

  it.each([
    { typicalP: 0.9 },
    { typicalP: 0.2, temperature: 0.7 },
    { typicalP: 0.99, temperature: 2, minKeep: 5 },
  ])('keeps the tokens nearest to the entropy, as many as it takes, within 10⁻⁵: %o', (parameters) => {
    fc.assert(
      fc.property(anyRow, fc.maxSafeInteger(), (row, seed) => {
        const { typicalP, temperature = 1, minKeep = 1 } = parameters;
        const kept = new Set(inBlocks(row, parameters, seed).kept.map(({ id }) => id));
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
      { numRuns: 150 },
    );
  });

  /** The tokens' weights less what XTC removes; null where rounding decides what reaches its threshold. */
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
    'draws from the whole softmax, XTC’s top choices left out, where the uniform number falls, within 10⁻⁵: %o',
    (parameters) => {
      const { temperature, xtcThreshold = 2, minKeep = 1 } = parameters;
      fc.assert(
        fc.property(anyRow, fc.maxSafeInteger(), (row, seed) => {
          const weights = weightsOf(row, temperature, xtcThreshold);
          fc.pre(weights !== null && weights.filter((weight) => weight > 0).length >= minKeep);
          const { token } = inBlocks(row, parameters, seed);
          const uniform = new DrawSource({ seed, prompt: 0, choice: 0 }).uniform(0, DRAW_TOKEN);
          const total = weights.reduce((sum, weight) => sum + weight, 0);
          const before = weights.slice(0, token).reduce((sum, weight) => sum + weight, 0) / total;
          expect(weights[token]).toBeGreaterThan(0);
          expect(before).toBeLessThan(uniform + 1e-5);
          expect(before + weights[token]! / total).toBeGreaterThan(uniform - 1e-5);
        }),
        { numRuns: 150 },
      );
    },
  );
});

it('rows of any length are told apart from what lies behind them', () => {
  const two = kernel.allocate(2 * SIZE);
  const first = two.subarray(0, SIZE);
  two.fill(1000, SIZE);
  first.fill(-3);
  const { best, maxima, total } = reduce(new RowBlocks(SIZE, kernel), first, 1);
  expect({ best, maxima }).toEqual({ best: 0, maxima: new Array(8).fill(-3) });
  expect(total).toBeCloseTo(SIZE, 3);
});

it('only vocabularies above 32,768 are large', () => {
  expect([32_768, 32_769].map(isLargeVocabulary)).toEqual([false, true]);
});
