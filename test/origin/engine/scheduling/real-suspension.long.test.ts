import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ModelRunner } from '../../../../origin/model/model-runner.ts';
import { openModel } from '../../../../origin/model/open/open-model.ts';
import { SimdKernel } from '../../../../origin/sampling/kernel/simd-kernel.ts';
import { Driver } from '../support/engine-driver.ts';
import { expectAsAlone, schedules } from '../support/random-schedule.ts';
import { type SyntheticEngine, syntheticEngine } from '../support/synthetic-engine.ts';

const SCHEDULES = 30;

/** Schedules in which flex work and tenants above their share are suspended all the time, on ONNX Runtime. */
describe.each([
  ['8-bit', { quantization: 'q8' }],
  ['concatenated-past', { attention: 'concatenated', positionIds: true }],
] as const)('a suspended sequence of a %s model', (_, options) => {
  let model: SyntheticEngine;
  let runner: ModelRunner;
  const kernel = new SimdKernel();

  beforeAll(async () => {
    model = syntheticEngine(options, { slots: 3, prefillChunk: 16 });
    ({ runner } = await openModel(model.data.model, (length) => kernel.allocate(length)));
  });
  afterAll(() => runner.dispose());

  const start = (prefixStoreBytes: number) =>
    new Driver(runner, {
      prefixStoreBytes,
      kernel,
      tokenBytes: model.data.tokenBytes,
      eosIds: model.data.eosIds,
    });

  it('has the bits of one that was never suspended', async () => {
    let suspensions = 0;
    await fc.assert(
      fc.asyncProperty(schedules, fc.constantFrom(40, 1000), async (schedule, chunks) => {
        const driver = start(chunks * 16 * runner.kvBytes.positionBytes);
        await expectAsAlone(schedule, driver, () => start(0));
        suspensions += driver.engine.status.suspensions ?? 0;
        expect(driver.engine.status.suspended).toBe(0);
      }),
      { numRuns: SCHEDULES },
    );
    expect(suspensions).toBeGreaterThan(SCHEDULES);
  });
});
