import { expect, test } from 'vitest';
import { buildModel } from '../../../../origin/export/build.ts';
import { type ModelRunner, RunTerminated } from '../../../../origin/model/model-runner.ts';
import { FallbackRunner } from '../../../../origin/model/web/fallback-runner.ts';
import { largestDifference, openRunner } from '../../export/built-model.ts';
import { CASES } from '../../export/family-cases.ts';
import { hashedCheckpoint } from '../../export/hashed-checkpoint.ts';
import {
  decodeRows,
  prefillPrompt,
  randomTokens,
  syntheticRunner,
  temporaryDirectory,
} from '../synthetic-runner.ts';

/** Runs compute the same logits alone and again up to this. */
const ROUNDING = 1e-4;

/** Three equal models: one on a device that can fail, one that takes over, and one that nothing befalls. */
async function models(open: () => Promise<ModelRunner>, losesStates = false) {
  const [device, processor, sound] = [await open(), await open(), await open()];
  let failure: Error | null = null;
  let disposals = 0;
  const unused = () => expect.unreachable();
  const lost = { isLost: true, restore: unused };
  const fragile: ModelRunner = {
    shape: device.shape,
    kvBytes: device.kvBytes,
    states: losesStates
      ? { bytes: device.states!.bytes, keep: () => lost, read: unused, write: unused }
      : (device.states ?? null),
    decode: async (batch) => (failure ? Promise.reject(failure) : device.decode(batch)),
    prefill: async (chunk, signal) => (failure ? Promise.reject(failure) : device.prefill(chunk, signal)),
    copy: (...of) => device.copy(...of),
    dispose: () => void disposals++,
  };
  const faults: unknown[] = [];
  return {
    runner: new FallbackRunner(fragile, processor, (fault) => faults.push(fault)),
    sound,
    fail: (thrown: Error | null) => (failure = thrown),
    faults,
    disposals: () => disposals,
  };
}

const openSynthetic = async () => (await syntheticRunner()).runner;

/** Opens runners of a random model of a family. */
function opens(family: string): () => Promise<ModelRunner> {
  const { config, tensors } = CASES.find(({ name }) => name === family)!;
  const directory = `${temporaryDirectory()}/model`;
  const built = buildModel(hashedCheckpoint(config, tensors), { precision: 'fp32', directory });
  return () => built.then(() => openRunner(directory, 4));
}

const PROMPT = randomTokens(70, 1, 250);

/** Sequences that begin, part and go on; returns the logits of each run. */
async function* sequences(runner: ModelRunner): AsyncGenerator<readonly Float32Array[]> {
  yield [await prefillPrompt(runner, 0, PROMPT)];
  yield decodeRows(runner, 0, [{ token: 5, position: 70 }]);
  runner.copy(0, 1, 71);
  yield decodeRows(runner, 0, [
    { token: 6, position: 71 },
    { token: 7, position: 71 },
  ]);
  runner.copy(1, 2, 72);
  yield decodeRows(runner, 2, [{ token: 8, position: 72 }]);
  // A slot that begins anew.
  yield [await prefillPrompt(runner, 1, PROMPT.subarray(3, 40))];
  runner.copy(1, 3, 20);
  yield decodeRows(runner, 3, [{ token: 9, position: 20 }]);
}

/** Sequences that begin from a kept state, go back to it, and go on. */
async function* withStates(runner: ModelRunner): AsyncGenerator<readonly Float32Array[]> {
  yield [await prefillPrompt(runner, 0, PROMPT)];
  const end = runner.states!.keep(0, 70);
  yield decodeRows(runner, 0, [{ token: 5, position: 70 }]);
  // A token that waits for its mask.
  yield decodeRows(runner, 0, [{ token: 5, position: 70 }]);
  runner.copy(0, 1, 70);
  end.restore(1, 70);
  yield decodeRows(runner, 1, [{ token: 6, position: 70 }]);
  end.restore(0, 70);
  yield decodeRows(runner, 0, [{ token: 7, position: 70 }]);
  yield decodeRows(runner, 0, [{ token: 8, position: 71 }]);
  yield [await prefillPrompt(runner, 1, PROMPT.subarray(3, 40))];
}

type Models = Awaited<ReturnType<typeof models>>;

/** Compares all runs with those of a model that nothing befalls. @param failing the first run that fails */
async function expectEqualRuns(
  { runner, sound, fail }: Models,
  runs: typeof sequences,
  failing: number | null,
): Promise<void> {
  const [ours, expected] = [runs(runner), runs(sound)];
  for (let run = 0; ; run++) {
    if (run === failing) fail(new Error('lost'));
    const [own, other] = [await ours.next(), await expected.next()];
    if (own.done || other.done) return;
    for (const [row, logits] of own.value.entries())
      expect(largestDifference(logits, other.value[row]!)).toBeLessThan(ROUNDING);
  }
}

test.each([0, 1, 2, 3, 4, 5])(
  'after a fault of run %i all sequences go on as if nothing had happened',
  async (run) => {
    const all = await models(openSynthetic);
    await expectEqualRuns(all, sequences, run);
    expect([all.faults.map(String), all.disposals()]).toEqual([['Error: lost'], 1]);
  },
);

test.each(['mamba2', 'qwen3_5_text'])(
  'after a fault of any run, sequences of %s go on with their states',
  async (family) => {
    const open = opens(family);
    for (let run = 0; run < 7; run++) {
      const all = await models(open);
      await expectEqualRuns(all, withStates, run);
      expect([all.faults.map(String), all.disposals()]).toEqual([['Error: lost'], 1]);
    }
  },
);

test('states that a device has lost are computed again there', async () => {
  const all = await models(opens('qwen3_5_text'), true);
  await expectEqualRuns(all, withStates, null);
  expect(all.faults).toEqual([]);
});

test('a cancelled run is no fault of the device', async () => {
  const { runner, fail, faults } = await models(openSynthetic);
  fail(new RunTerminated('cancelled'));
  await expect(prefillPrompt(runner, 0, PROMPT)).rejects.toThrow('cancelled');
  fail(null);
  await prefillPrompt(runner, 0, PROMPT);
  expect(faults).toEqual([]);
});
