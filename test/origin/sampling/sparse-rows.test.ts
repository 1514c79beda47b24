import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { samplerThreads } from '../../../origin/engine/thread/sampler-threads.ts';
import { SparseLogits } from '../../../origin/model/sparse-logits.ts';
import { SimdKernel } from '../../../origin/sampling/kernel/simd-kernel.ts';
import { tokenLogprob } from '../../../origin/sampling/logprobs.ts';
import { isIn } from '../../../origin/sampling/masked-copy.ts';
import { SamplerPool } from '../../../origin/sampling/pool/sampler-pool.ts';
import { TokenDraw } from '../../../origin/sampling/token-draw.ts';
import type { SamplingParameters } from '../../../shared/sampling.ts';
import { runs } from '../../support/random.ts';
import { anyRow, SIZE as TILE } from './any-row.ts';
import { anyMask, anyParameters } from './arbitraries.ts';
import { workspaceOf } from './one-token.ts';
import { SparseDevice } from './sparse-device.ts';

const SIZE = 4 * TILE;
const ROWS = 4;
const MOST_FETCHES = 12;

const alone = workspaceOf(SIZE, true);

const anyLargeRow = anyRow.map((tile) =>
  Float32Array.from({ length: SIZE }, (_, id) => tile[id % TILE]! + Math.floor(id / TILE) / 64),
);

const anyBad = fc.tuple(fc.nat(SIZE - 1), fc.constantFrom(Number.NaN, Infinity, -Infinity));

const anyAsked = fc.record({
  row: fc
    .tuple(anyLargeRow, fc.option(anyBad, { freq: 8 }))
    .map(([row, bad]) => (bad ? row.with(...bad) : row)),
  // Some far above and below the others.
  edits: fc.array(fc.tuple(fc.nat(SIZE - 1), fc.constantFrom(-Infinity, -100, -1, 0, 3, 40, 1000)), {
    maxLength: 40,
  }),
  banBest: fc.boolean(),
  mask: fc.option(anyMask(SIZE), { freq: 2 }),
  parameters: anyParameters(SIZE).map((all): SamplingParameters => ({ ...all, allowedTokenIds: null })),
  seed: fc.maxSafeInteger(),
  step: fc.nat(100_000),
  topLogprobs: fc.option(fc.nat(20)),
});

it('draws from sparse rows are those from whole rows, and what they read has been brought', async () => {
  const threads = samplerThreads(2)!;
  const kernel = new SimdKernel(threads.threads, threads.viewMemory);
  const device = new SparseDevice(kernel.allocate(SparseLogits.length(ROWS, SIZE)), ROWS, SIZE);
  const pool = new SamplerPool(kernel, SIZE, threads, ROWS);
  let sparse = 0;
  let undone = 0;
  const step = async (asked: readonly (typeof anyAsked extends fc.Arbitrary<infer T> ? T : never)[]) => {
    while (!pool.begin(device.logits.memory, asked.length)) await sleep(1);
    device.logits.clear();
    const expected = asked.map((one, index) => {
      const { row, parameters, seed, step: at, topLogprobs, edits, banBest, mask } = one;
      const draw = new TokenDraw(parameters, { seed, prompt: 0, choice: index }, alone);
      const coldness = mask === null ? draw.coldness : 1;
      if (coldness === null) device.rowAt(index).set(row);
      else device.keep(index, row, coldness);
      sparse += Number(coldness !== null);
      const best = row.reduce((most, logit, id) => (logit > row[most]! ? id : most), 0);
      const changed = Float32Array.from(row);
      const edit = () => {
        const known = device.logits.of(device.rowAt(index));
        alone.edits.begin(device.rowAt(index), known, mask);
        for (const [id, value] of banBest ? [...edits, [best, -Infinity] as const] : edits) {
          alone.edits.set(id, value);
          changed[id] = value;
        }
        const isHere = mask === null || known!.askMasked(mask);
        return isHere && alone.edits.isComplete;
      };
      if (!edit()) {
        device.fetchWanted();
        expect(edit()).toBe(true);
      }
      expect(pool.add(draw, device.rowAt(index), alone.edits, at, topLogprobs)).toBe(index);
      if (mask) for (const id of changed.keys()) if (!isIn(mask, id)) changed[id] = -Infinity;
      try {
        const token = draw.from(changed, at);
        const logprobs = topLogprobs === null ? null : tokenLogprob(row, token, topLogprobs, alone);
        return { token, logprobs };
      } catch {
        return { token: null, logprobs: null };
      }
    });
    pool.run();
    for (let fetch = 0; fetch < MOST_FETCHES; fetch++) {
      while (!pool.settle()) await sleep(1);
      if (!device.fetchWanted()) break;
      pool.retry();
    }
    while (!pool.settle()) await sleep(1);
    for (const [index, { token, logprobs }] of expected.entries()) {
      // Where all other logits are far below one that was banned, the engine samples from the whole row.
      if (pool.token(index) === null && token !== null) undone++;
      else expect(pool.token(index)).toBe(token);
      if (logprobs === null || pool.token(index) === null) continue;
      const found = pool.logprobs(index);
      expect(found.logprob).toBeCloseTo(logprobs.logprob, 4);
      expect(found.top.map(([id]) => id)).toEqual(logprobs.top.map(([id]) => id));
    }
    pool.end();
  };
  const anyStep = fc.array(anyAsked, { minLength: 1, maxLength: ROWS });
  await fc.assert(fc.asyncProperty(anyStep, step), { numRuns: runs(150) });
  expect(sparse).toBeGreaterThan(runs(100));
  expect(undone).toBeLessThan(sparse / 5);
});

it('the rest of a row is brought once', () => {
  const kernel = new SimdKernel();
  const device = new SparseDevice(kernel.allocate(SparseLogits.length(ROWS, SIZE)), ROWS, SIZE);
  const [row] = fc.sample(anyLargeRow, { numRuns: 1, seed: 7 });
  device.keep(2, row!, 1);
  expect(device.logits.indexOf(device.rowAt(1))).toBe(-1);
  expect(device.logits.indexOf(device.rowAt(2))).toBe(2);
  device.complete(device.rowAt(2));
  expect(device.rowAt(2)).toEqual(row);
  expect(device.logits.indexOf(device.rowAt(2))).toBe(-1);
  expect(device.logits.of(row!)).toBeNull();
});
