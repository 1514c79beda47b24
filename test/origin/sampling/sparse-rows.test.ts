import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { samplerThreads } from '../../../origin/engine/sampler-threads.ts';
import { SparseLogits } from '../../../origin/model/sparse-logits.ts';
import { SimdKernel } from '../../../origin/sampling/kernel/simd-kernel.ts';
import { tokenLogprob } from '../../../origin/sampling/logprobs.ts';
import { SamplerPool } from '../../../origin/sampling/pool/sampler-pool.ts';
import { TokenDraw } from '../../../origin/sampling/token-draw.ts';
import type { SamplingParameters } from '../../../shared/sampling.ts';
import { anyRow, SIZE as TILE } from './any-row.ts';
import { anyParameters } from './arbitraries.ts';
import { workspaceOf } from './one-token.ts';
import { SparseDevice } from './sparse-device.ts';

const SIZE = 4 * TILE;
const ROWS = 4;
const MOST_FETCHES = 12;

const alone = workspaceOf(SIZE, true);

const anyLargeRow = anyRow.map((tile) =>
  Float32Array.from({ length: SIZE }, (_, id) => tile[id % TILE]! + Math.floor(id / TILE) / 64),
);

const anyAsked = fc.record({
  row: anyLargeRow,
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
  const step = async (asked: readonly (typeof anyAsked extends fc.Arbitrary<infer T> ? T : never)[]) => {
    while (!pool.begin(device.logits.memory, asked.length)) await sleep(1);
    device.logits.clear();
    const expected = asked.map(({ row, parameters, seed, step: at, topLogprobs }, index) => {
      const draw = new TokenDraw(parameters, { seed, prompt: 0, choice: index }, alone);
      const { coldness } = draw;
      if (coldness === null) device.rowAt(index).set(row);
      else device.keep(index, row, coldness);
      sparse += Number(coldness !== null);
      alone.edits.begin(device.rowAt(index));
      expect(pool.add(draw, device.rowAt(index), alone.edits, at, topLogprobs)).toBe(index);
      const token = draw.from(row, at);
      const logprobs = topLogprobs === null ? null : tokenLogprob(row, token, topLogprobs, alone);
      return { token, logprobs };
    });
    pool.run();
    for (let fetch = 0; fetch < MOST_FETCHES; fetch++) {
      while (!pool.settle()) await sleep(1);
      if (!device.fetchWanted()) break;
      pool.retry();
    }
    while (!pool.settle()) await sleep(1);
    for (const [index, { token, logprobs }] of expected.entries()) {
      expect(pool.token(index)).toBe(token);
      if (logprobs === null) continue;
      const found = pool.logprobs(index);
      expect(found.logprob).toBeCloseTo(logprobs.logprob, 4);
      expect(found.top.map(([id]) => id)).toEqual(logprobs.top.map(([id]) => id));
    }
    pool.end();
  };
  const anyStep = fc.array(anyAsked, { minLength: 1, maxLength: ROWS });
  await fc.assert(fc.asyncProperty(anyStep, step), { numRuns: 150 });
  expect(sparse).toBeGreaterThan(50);
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
