import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { decode } from '../../origin/hub/greedy.ts';
import { openCudaDriver } from '../../origin/model/ort/cuda-driver.ts';
import { openOrtApi } from '../../origin/model/ort/ort-capi.ts';
import { buildFakeCudaDriver, hasCompiler } from '../support/fake-cuda-driver.ts';
import { writeSyntheticModel } from '../support/synthetic/synthetic-model.ts';
import { compareRuns, decodeOnDevice, tokenOf } from './graph-runs.ts';
import { cpuDeviceRunner } from './runners.ts';

const ROWS = 3;
const STEPS = 6;

it.runIf(hasCompiler)('decodes with inputs and logits on the device as a runner does', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'continuo-graphs-'));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  writeSyntheticModel(directory, { contextLength: 64 });
  const { folder, file } = buildFakeCudaDriver();
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const copies = openCudaDriver(file).copies(0);
  const size = { rows: ROWS, steps: STEPS, contextLength: 64, now: () => performance.now() };
  const { logits } = decodeOnDevice({
    ...size,
    api: openOrtApi(),
    device: { provider: 'cpu' },
    directory,
    copies,
  });

  const runner = cpuDeviceRunner(directory, { slots: ROWS, prefillChunk: 16 }, false);
  onTestFinished(() => runner.dispose());
  const { vocabularySize } = runner.shape;
  const expected: Float32Array[] = [];
  for (let step = 0; step < STEPS; step++) {
    const rows = Array.from({ length: ROWS }, (_, row) => ({
      token: tokenOf(step, row, vocabularySize),
      position: step,
    }));
    const parts = await decode(runner, 0, rows, () => step);
    expected.push(Float32Array.from(parts.flatMap((part) => [...part])));
  }
  expect(compareRuns(expected, logits)).toBe('same bits');
  logits[4]![7]! += 0.5;
  expect(compareRuns(expected, logits)).toMatch(/^step 4 differs by 0\.[45]/);
});
