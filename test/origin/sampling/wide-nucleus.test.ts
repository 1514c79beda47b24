import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { SimdKernel } from '../../../origin/sampling/kernel/simd-kernel.ts';
import type { Row } from '../../../origin/sampling/truncation/gather.ts';
import { drawFromWideNucleus } from '../../../origin/sampling/truncation/wide-nucleus.ts';
import { SamplerWorkspace } from '../../../origin/sampling/workspace.ts';
import { NEUTRAL_SAMPLING } from '../../../shared/sampling.ts';
import { sampleOnce } from './one-token.ts';
import { type Share, softmax, sum } from './reference.ts';

/** 150 whole blocks and a short one. */
const SIZE = 150 * 128 + 37;
const kernel = new SimdKernel();
const workspace = new SamplerWorkspace(SIZE, kernel);

const anyShape = fc.record({
  seed: fc.integer({ min: 1, max: 2 ** 31 - 2 }),
  scale: fc.constantFrom(0, 0.1, 1, 2),
  step: fc.constantFrom(0, 0, 0.25, 1),
  forbidden: fc.constantFrom(0, 0.3),
  heads: fc.nat(3),
});

/** Bell-shaped, with ties or without, some tokens forbidden, a few far above the others. */
function rowLike({
  seed,
  scale,
  step,
  forbidden,
  heads,
}: typeof anyShape extends fc.Arbitrary<infer S> ? S : never) {
  let state = seed;
  const uniform = () => (state = (state * 48_271) % 2_147_483_647) / 2_147_483_647;
  const row = Float32Array.from({ length: SIZE }, () => {
    const z = scale * 2 * (uniform() + uniform() + uniform() - 1.5);
    if (uniform() < forbidden) return -Infinity;
    return step === 0 ? z : Math.round(z / step) * step;
  });
  for (let head = 0; head < heads; head++) row[Math.floor(uniform() * SIZE)] = 7 * uniform();
  return row;
}

const anyTopP = fc.constantFrom(0.5, 0.75, 0.9, 0.99);
const anyUniform = fc.double({ min: 0, max: 1 - 2 ** -32, noNaN: true });

function rowOf(logits: Float32Array, temperature = 1): Row {
  workspace.blocks.argmax(logits);
  return { logits, highest: workspace.blocks.highest, coldness: 1 / temperature };
}

/** What top-p keeps, best first, lower ids first among equals: all that sum to less than the share, and one more. */
function nucleus(logits: Float32Array, topP: number): Share[] {
  const ordered = softmax([...logits], 1).toSorted((a, b) => b.p - a.p || a.id - b.id);
  let before = 0;
  const end = ordered.findIndex(({ p }) => (before += p) >= topP - 2 ** -20);
  return ordered.slice(0, end < 0 ? ordered.length : end + 1);
}

describe('a wide nucleus', () => {
  it('is drawn from where the uniform number falls, within 10⁻⁵, and never past its last token', () => {
    let drawn = 0;
    fc.assert(
      fc.property(anyShape, anyTopP, anyUniform, (shape, topP, u) => {
        const logits = rowLike(shape);
        const token = drawFromWideNucleus(rowOf(logits), { ...NEUTRAL_SAMPLING, topP }, u, workspace);
        if (token < 0) return;
        drawn++;
        const kept = nucleus(logits, topP);
        const total = sum(kept.map(({ p }) => p));
        const least = kept.at(-1)!;
        const { p } = softmax([...logits], 1).find(({ id }) => id === token)!;
        expect(p).toBeGreaterThan(least.p * (1 - 1e-3));
        const before = sum(kept.filter(({ id }) => id < token).map(({ p }) => p)) / total;
        // A boundary that rounding decides may lie one token further.
        const closely = 1e-5 + least.p / total;
        expect(before).toBeLessThan(u + closely);
        expect(before + p / total).toBeGreaterThan(u - closely);
      }),
      { numRuns: 200 },
    );
    expect(drawn).toBeGreaterThan(20);
  });

  it('has the boundary that gathering all of it finds, ties included, but where float32’s rounding decides', () => {
    let compared = 0;
    fc.assert(
      fc.property(anyShape, anyTopP, (shape, topP) => {
        const logits = rowLike(shape);
        const parameters = { ...NEUTRAL_SAMPLING, topP };
        if (drawFromWideNucleus(rowOf(logits), parameters, 0.5, workspace) < 0) return;
        const { blocks, search } = workspace;
        const [least, total] = [search.boundary, sum([...blocks.above])];
        // min_p at zero weight keeps everything, but gathers.
        const gathered = sampleOnce({ logits, parameters: { topP, minP: 1e-300 } }, workspace).kept;
        const { candidates } = workspace;
        compared++;
        // A boundary that rounding decides may lie one token further, and no token lies between the two.
        const other = Math.min(...candidates.weights.subarray(0, gathered.length));
        const [low, high] = [Math.min(least, other) * (1 + 1e-6), Math.max(least, other) * (1 - 1e-6)];
        const highest = logits.reduce((most, logit) => Math.max(most, logit), -Infinity);
        const weights = Array.from(logits, (logit) => Math.exp(logit - highest));
        expect(weights.filter((weight) => weight > low && weight < high)).toEqual([]);
        expect(Math.abs(total - candidates.mass)).toBeLessThan(1e-6 * candidates.mass + least);
      }),
      { numRuns: 150 },
    );
    expect(compared).toBeGreaterThan(10);
  });

  it('is left to the plain way where min_keep may ask for more than it holds', () => {
    const logits = Float32Array.from({ length: SIZE }, (_, id) => (id * 7919) % 13);
    const draw = (minKeep: number) =>
      drawFromWideNucleus(rowOf(logits), { ...NEUTRAL_SAMPLING, topP: 0.5, minKeep }, 0.5, workspace);
    expect(draw(SIZE)).toBe(-1);
  });

  it('gives the sampler the token that it takes without a kernel, or where rounding decides, the one beside it', () => {
    const byId = new SamplerWorkspace(SIZE);
    fc.assert(
      fc.property(anyShape, anyTopP, fc.nat(1e6), (shape, topP, seed) => {
        const logits = rowLike(shape);
        const trial = { logits, parameters: { topP }, seed };
        const token = sampleOnce(trial, workspace).token;
        const { token: expected, kept } = sampleOnce(trial, byId);
        const [from, to] = [Math.min(token, expected), Math.max(token, expected)];
        const between = sum(kept.filter(({ id }) => id > from && id < to).map(({ p }) => p));
        expect(between).toBeLessThan(1e-5);
      }),
      { numRuns: 60 },
    );
  });
});
