import { expect, it, onTestFinished } from 'vitest';
import type { ModelRunner } from '../../../origin/model/model-runner.ts';
import { withIndependentRows } from '../../../origin/model/open/start-runner.ts';
import { writeSyntheticModel } from '../../support/synthetic/synthetic-model.ts';
import { cpuDeviceRunner } from '../../tools/gpu/runners.ts';
import { decodeRows, syntheticRunner, temporaryDirectory } from './synthetic-runner.ts';

/** Kernels for a single row of these weights round otherwise on every processor. */
const MODEL = {
  hidden: 192,
  intermediate: 352,
  vocabulary: 1000,
  quantization: 'q4',
  accuracyLevel: 0,
} as const;
const FREE = { cache: 'in-place', couplesRows: false } as const;
const COUPLED = { cache: 'in-place', couplesRows: true } as const;

it('a lone row gets an idle row on the CPU; device rows are decoded as they are', async () => {
  const { runner: onCpu } = await syntheticRunner(MODEL);
  expect(onCpu.shape.minRows).toBe(2);
  const directory = temporaryDirectory();
  writeSyntheticModel(directory, MODEL);
  const runner = cpuDeviceRunner(directory, { slots: 4, prefillChunk: 32 }, false);
  onTestFinished(() => runner.dispose());
  expect(await withIndependentRows(runner, { decoder: FREE }, { provider: 'cuda' })).toBe(runner);
  expect(runner.shape.minRows).toBe(1);
});

it.each([
  { provider: 'cuda', joins: true },
  { provider: 'webgpu', joins: undefined },
] as const)('runs compute several prompts on $provider: $joins', async ({ provider, joins }) => {
  const directory = temporaryDirectory();
  writeSyntheticModel(directory, MODEL);
  const runner = cpuDeviceRunner(directory, { slots: 4, prefillChunk: 32 }, false);
  onTestFinished(() => runner.dispose());
  await withIndependentRows(runner, { decoder: FREE }, { provider });
  expect(runner.shape.joinsPrompts).toBe(joins);
});

it.each(['cpu', 'cuda', 'webgpu'] as const)('coupled rows are decoded one by one on %s', async (provider) => {
  const runs: number[] = [];
  const runner: ModelRunner = {
    shape: { vocabularySize: 4, contextLength: 8, slots: 4, prefillChunk: 4, minRows: 1 },
    kvBytes: { positionBytes: 1, read() {}, write() {}, discard() {} },
    decode({ rows }) {
      runs.push(rows);
      return new Float32Array(4 * rows);
    },
    prefill: () => Promise.reject(new Error('not for this')),
    copy() {},
    dispose() {},
  };
  const apart = await withIndependentRows(runner, { decoder: COUPLED }, { provider });
  await decodeRows(
    apart,
    0,
    [1, 2, 3].map((token) => ({ token, position: 0 })),
  );
  expect(runs).toEqual([1, 1, 1]);
});
