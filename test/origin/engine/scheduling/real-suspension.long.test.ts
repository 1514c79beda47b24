import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Submission } from '../../../../origin/engine/messages.ts';
import type { ModelRunner } from '../../../../origin/model/model-runner.ts';
import { openModel } from '../../../../origin/model/open/open-model.ts';
import { SimdKernel } from '../../../../origin/sampling/kernel/simd-kernel.ts';
import { runs } from '../../../support/random.ts';
import { Driver } from '../support/engine-driver.ts';
import { anySubmission } from '../support/submissions.ts';
import { type SyntheticEngine, syntheticEngine } from '../support/synthetic-engine.ts';
import { ordered, transcribe } from '../support/transcript.ts';

const SCHEDULES = runs(100);
const MIN_SUSPENSIONS = SCHEDULES;

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
  afterAll(() => {
    runner.dispose();
    model.remove();
  });

  const start = (prefixStoreBytes: number) =>
    new Driver(runner, {
      prefixStoreBytes,
      kernel,
      tokenBytes: model.data.tokenBytes,
      eosIds: model.data.eosIds,
    });
  const outputOf = (driver: Driver, { requestId, choices }: Submission) =>
    ordered(transcribe(driver.eventsOf(requestId), choices));

  it('has the bits of one that was never suspended', async () => {
    let suspensions = 0;
    const arrival = fc.record({ submission: anySubmission(12), at: fc.nat(30), aborted: fc.nat(9) });
    await fc.assert(
      fc.asyncProperty(
        fc.array(arrival, { minLength: 4, maxLength: 9, size: 'max' }),
        fc.constantFrom(40, 1000),
        async (arrivals, chunks) => {
          const driver = start(chunks * 16 * runner.kvBytes.positionBytes);
          const requests = arrivals.map(({ submission }, index) => ({
            ...submission,
            requestId: `${index}`,
          }));
          for (let step = 0; step <= 40; step++) {
            for (const [index, { at, aborted }] of arrivals.entries()) {
              if (at === step) driver.submit(requests[index]!);
              if (aborted === 0 && at + 8 === step) driver.engine.abort(`${index}`);
            }
            await driver.step();
          }
          await driver.finish();
          suspensions += driver.engine.status.suspensions ?? 0;
          expect(driver.engine.status.suspended).toBe(0);
          for (const [index, request] of requests.entries()) {
            if (arrivals[index]!.aborted === 0) continue;
            const alone = start(0);
            alone.submit({ ...request, flex: false });
            await alone.finish();
            expect(outputOf(driver, request)).toEqual(outputOf(alone, request));
          }
        },
      ),
      { numRuns: SCHEDULES },
    );
    expect(suspensions).toBeGreaterThan(MIN_SUSPENSIONS);
  });
});
