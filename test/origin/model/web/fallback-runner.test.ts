import { expect, test } from 'vitest';
import { type ModelRunner, RunTerminated } from '../../../../origin/model/model-runner.ts';
import { FallbackRunner } from '../../../../origin/model/web/fallback-runner.ts';
import { largestDifference } from '../../export/built-model.ts';
import { decodeRows, prefillPrompt, randomTokens, syntheticRunner } from '../synthetic-runner.ts';

/** Runs compute the same logits alone and again up to this. */
const ROUNDING = 1e-4;

/** Three equal models: one on a device that can fail, one that takes over, and one that nothing befalls. */
async function models() {
  const [device, processor, sound] = await Promise.all([1, 2, 3].map(() => syntheticRunner()));
  let failure: Error | null = null;
  let disposals = 0;
  const fragile: ModelRunner = {
    shape: device!.runner.shape,
    kvBytes: device!.runner.kvBytes,
    decode: async (batch) => (failure ? Promise.reject(failure) : device!.runner.decode(batch)),
    prefill: async (chunk, signal) =>
      failure ? Promise.reject(failure) : device!.runner.prefill(chunk, signal),
    copy: (...of) => device!.runner.copy(...of),
    dispose: () => void disposals++,
  };
  const faults: unknown[] = [];
  return {
    runner: new FallbackRunner(fragile, processor!.runner, (fault) => faults.push(fault)),
    sound: sound!.runner,
    fail: (thrown: Error | null) => (failure = thrown),
    faults,
    disposals: () => disposals,
  };
}

const PROMPT = randomTokens(70, 1);

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

test.each([0, 1, 2, 3, 4, 5])(
  'after a fault of run %i all sequences go on as if nothing had happened',
  async (run) => {
    const { runner, sound, fail, faults, disposals } = await models();
    const expected = sequences(sound);
    let runs = 0;
    const ours = sequences(runner);
    for (;;) {
      if (runs++ === run) fail(new Error('lost'));
      const [own, other] = [await ours.next(), await expected.next()];
      if (own.done || other.done) break;
      for (const [row, logits] of own.value.entries())
        expect(largestDifference(logits, other.value[row]!)).toBeLessThan(ROUNDING);
    }
    expect([faults.map(String), disposals()]).toEqual([['Error: lost'], 1]);
  },
);

test('a cancelled run is no fault of the device', async () => {
  const { runner, fail, faults } = await models();
  fail(new RunTerminated('cancelled'));
  await expect(prefillPrompt(runner, 0, PROMPT)).rejects.toThrow('cancelled');
  fail(null);
  await prefillPrompt(runner, 0, PROMPT);
  expect(faults).toEqual([]);
});
