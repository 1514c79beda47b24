import { afterAll, beforeAll, expect, test } from 'vitest';
import { measureBatchInvariance } from '../../../../origin/hub/check/batch-invariance.ts';
import type { DecodeBatch, ModelRunner } from '../../../../origin/model/model-runner.ts';
import { type OpenedModel, openModel } from '../../../../origin/model/open/open-model.ts';
import { newDirectory } from '../../../support/new-directory.ts';
import { writeSyntheticModel } from '../../../support/synthetic/synthetic-model.ts';

const PROMPT = Array.from({ length: 40 }, (_, index) => (index * 37) % 250);

let opened: OpenedModel;
beforeAll(async () => {
  const directory = newDirectory();
  writeSyntheticModel(directory);
  opened = await openModel({ directory, slots: 3, contextLength: 64, threads: 1, kvLimitBytes: 1e9 });
});
afterAll(() => opened.runner.dispose());

/** The runner with changed decode logits. */
function altered(change: (logits: Float32Array, batch: DecodeBatch) => void): ModelRunner {
  const { runner } = opened;
  return {
    shape: runner.shape,
    kvBytes: runner.kvBytes,
    prefill: (chunk, signal) => runner.prefill(chunk, signal),
    copy: (...args) => runner.copy(...args),
    dispose: () => undefined,
    async decode(batch) {
      const logits = Float32Array.from(await runner.decode(batch));
      change(logits, batch);
      return logits;
    },
  };
}

test('reports a batch-invariant model as identical', async () => {
  expect(await measureBatchInvariance(opened.runner, PROMPT, 3)).toEqual({
    rows: 3,
    steps: 3,
    identical: true,
    maxDifference: 0,
  });
});

test('detects one changed bit in one row of one full batch, also the sign of a zero', async () => {
  let batches = 0;
  const lastBit = altered((logits, { rows }) => {
    if (rows < 3 || ++batches < 3) return;
    const bits = new Uint32Array(logits.buffer);
    bits[bits.length - 1]! ^= 1;
  });
  const found = await measureBatchInvariance(lastBit, PROMPT, 3);
  expect(found.identical).toBe(false);
  expect(found.maxDifference).toBeGreaterThan(0);
  const sign = altered((logits, { rows }) => {
    logits.fill(rows < 3 ? 0 : -0);
  });
  expect(await measureBatchInvariance(sign, PROMPT, 1)).toMatchObject({ identical: false, maxDifference: 0 });
});

test('does not report NaN as identical', async () => {
  const broken = altered((logits, { rows }) => {
    if (rows === 3) logits[5] = Number.NaN;
  });
  expect((await measureBatchInvariance(broken, PROMPT, 1)).identical).toBe(false);
});
