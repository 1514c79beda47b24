import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { WeightPrecision } from '../../../origin/export/graph/linear.ts';
import type { ModelRunner } from '../../../origin/model/model-runner.ts';
import { openModel } from '../../../origin/model/open/open-model.ts';
import { withProbedRows } from '../../../origin/model/open/row-probe.ts';
import { openOrtApi } from '../../../origin/model/ort/ort-capi.ts';
import type { OrtRunner } from '../../../origin/model/runner/ort-runner.ts';
import { SimdKernel } from '../../../origin/sampling/kernel/simd-kernel.ts';
import type { Tokenizer } from '../../../origin/tokenizer/tokenizer.ts';
import { buildFakeCudaDriver, hasCompiler } from '../../support/fake-cuda-driver.ts';
import { newDirectory } from '../../support/new-directory.ts';
import { cpuDeviceRunner, driverRunner } from '../../tools/gpu/runners.ts';
import { Driver, storeBytes } from './support/engine-driver.ts';
import { writeFamilyModel } from './support/family-model.ts';
import { expectAsAlone, schedules } from './support/random-schedule.ts';
import { submission } from './support/submissions.ts';
import { ordered, transcribe } from './support/transcript.ts';

/** Of each model. */
const ROUNDS = 4;

type Place = 'with copies of CUDA' | 'in whole buffers';

const MODELS: readonly (readonly [name: string, precision: WeightPrecision, place?: Place])[] = [
  // As on CUDA, whose card is main memory, and as on WebGPU, which binds whole buffers.
  ...(['lfm2', 'qwen3_5_text', 'bamba', 'mamba2'] as const).flatMap((name) => [
    ...(hasCompiler ? [[name, 'fp32', 'with copies of CUDA'] as const] : []),
    [name, 'fp32', 'in whole buffers'] as const,
  ]),
  ['lfm2', 'fp32'],
  ['lfm2-bias', 'fp32'],
  ['lfm2', 'int8'],
  ['lfm2', 'int4'],
  ['lfm2_moe', 'fp32'],
  ['qwen3_5_text', 'fp32'],
  ['qwen3_5_text', 'int8'],
  ['qwen3_5_text', 'int4'],
  ['qwen3_next', 'fp32'],
  ['qwen3_next', 'int8'],
  ['olmo_hybrid', 'fp32'],
  ['bamba', 'fp32'],
  ['bamba', 'int8'],
  ['granitemoehybrid-experts', 'fp32'],
  ['falcon_h1', 'fp32'],
  ['nemotron_h-experts', 'fp32'],
  // Without KV: states only.
  ['mamba2', 'fp32'],
  ['mamba2', 'int8'],
  ['zamba2', 'fp32'],
  ['kimi_linear', 'fp32'],
  ['kimi_linear', 'int8'],
  ['recurrent_gemma', 'fp32'],
  ['recurrent_gemma', 'int8'],
  // Without states: layers that read the KV of others.
  ['gemma4_text', 'fp32'],
  ['gemma4_text', 'int8'],
  ['gemma3n_text', 'fp32'],
  ['gemma3n_text', 'int8'],
];

/** On ONNX Runtime: each request gets the bits that it gets alone in an engine without a store. */
describe.each(
  MODELS.map(([name, precision, place = 'on the processor']) => [name, precision, place] as const),
)('a request to %s in %s %s', (name, precision, place) => {
  const folder = newDirectory();
  const kernel = new SimdKernel();
  let tokenizer: Tokenizer;
  let runner: ModelRunner;

  beforeAll(async () => {
    const directory = join(folder, 'model');
    tokenizer = await writeFamilyModel(directory, name, precision);
    const options = { directory, slots: 3, prefillChunk: 16, threads: 1, kvLimitBytes: 2 ** 30 };
    const allocate = (length: number) => kernel.allocate(length);
    if (place === 'on the processor') ({ runner } = await openModel(options, allocate));
    else if (place === 'in whole buffers') runner = cpuDeviceRunner(directory, options, true);
    else {
      const { file } = buildFakeCudaDriver();
      const device = driverRunner(directory, options, file, openOrtApi(), allocate);
      runner = await withProbedRows(device as OrtRunner, allocate);
    }
  });
  afterAll(() => runner.dispose());

  const start = (prefixStoreBytes: number) =>
    new Driver(runner, {
      prefixStoreBytes,
      kernel,
      tokenBytes: tokenizer.tokenBytes,
      eosIds: tokenizer.eosIds,
    });

  it('has the same bits among others, after a cached prefix, after suspension and after a rewind', async () => {
    const seen = { suspensions: 0, restored: 0 };
    await fc.assert(
      fc.asyncProperty(schedules, fc.constantFrom(6, 1000), async (schedule, chunks) => {
        // Half of the store, which states may have, has six of them.
        const budget = Math.max(storeBytes(runner, chunks), 12 * (runner.states?.bytes ?? 0));
        const driver = start(budget);
        await expectAsAlone(schedule, driver, () => start(0));
        const { suspensions = 0, prefixStore } = driver.engine.status;
        seen.suspensions += suspensions;
        seen.restored += prefixStore?.restoredTokens ?? 0;
      }),
      { numRuns: ROUNDS },
    );
    for (const count of Object.values(seen)) expect(count).toBeGreaterThan(ROUNDS);
  });

  const withStates = it.skipIf(/^gemma(4|3n)/.test(name));
  withStates('fails alone if its state is not numbers, and its slot serves the next one', async () => {
    const driver = start(0);
    const ask = (requestId: string) => {
      const tokens = Int32Array.from({ length: 20 }, (_, at) => (5 * at) % 97);
      return submission({ requestId, prompts: [{ tokens, maxTokens: 12 }], ignoreEos: true });
    };
    const outputOf = (from: Driver, requestId: string) => ordered(transcribe(from.eventsOf(requestId), 1));
    driver.submit(ask('bad'));
    while (driver.eventsOf('bad').length < 2) await driver.step();
    spoilStates(runner);
    for (const next of ['good', 'later', 'last', 'again']) driver.submit(ask(next));
    await driver.finish();
    const alone = start(0);
    alone.submit(ask('alone'));
    await alone.finish();
    const failure = { type: 'error', code: 'upstream_error', retryable: true };
    expect(driver.eventsOf('bad').at(-1)).toMatchObject(failure);
    for (const next of ['good', 'later', 'last', 'again']) {
      expect(outputOf(driver, next)).toEqual(outputOf(alone, 'alone'));
    }
  });
});

/** More than a sequence of these tests has. */
const LAST_POSITION = 100;

/** Makes every state of a position that a slot goes on from NaN. */
function spoilStates({ shape, states }: ModelRunner): void {
  const wrong = new Uint8Array(new Float32Array(states!.bytes / 4).fill(Number.NaN).buffer);
  for (let slot = 0; slot < shape.slots; slot++) {
    for (let position = LAST_POSITION; position > 0; position--) {
      try {
        states!.read(slot, position, new Uint8Array(states!.bytes));
      } catch {
        continue;
      }
      states!.write(slot, position, wrong);
      break;
    }
  }
}
