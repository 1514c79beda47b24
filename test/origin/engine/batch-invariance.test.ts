import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { runs } from '../../support/random.ts';
import { Driver, storeBytes } from './support/engine-driver.ts';
import { CHUNK, endless, longPrompt } from './support/long-requests.ts';
import { ScriptedRunner } from './support/scripted-runner.ts';
import { arrivals, expectReference, play, shape } from './support/workload.ts';

describe('batch invariance', () => {
  it('gives every request the tokens, text, logprobs and finish of the plain reference in every batch', async () => {
    let requests = 0;
    let restored = 0;
    let wholePrompts = 0;
    let suspensions = 0;
    let discards = 0;
    await fc.assert(
      fc.asyncProperty(
        arrivals,
        fc.integer({ min: 1, max: 9 }),
        fc.boolean(),
        // Chunks in the prefix store: none, so few that they are evicted all the time, or all.
        fc.constantFrom(0, 2, 5, 1000),
        async (workload, slots, slow, stored) => {
          const runner = new ScriptedRunner(shape(slots), slow ? { turns: 1, asyncDecode: true } : {});
          const driver = new Driver(runner, { prefixStoreBytes: storeBytes(runner, stored) });
          await play(driver, workload);
          restored += driver.engine.status.prefixStore?.restoredTokens ?? 0;
          discards += runner.discards.length;
          suspensions += driver.engine.status.suspensions ?? 0;
          for (const arrival of workload) {
            const { submission } = arrival;
            if (!expectReference(driver, arrival, shape(slots))) continue;
            requests++;
            for (const event of driver.eventsOf(submission.requestId)) {
              if (event.type !== 'started') continue;
              if (event.cachedTokens === submission.prompts[event.prompt]?.tokens.length) wholePrompts++;
            }
          }
        },
      ),
      { numRuns: runs(160) },
    );
    expect(requests).toBeGreaterThan(runs(1000));
    expect(restored).toBeGreaterThan(runs(1000));
    expect(wholePrompts).toBeGreaterThan(runs(50));
    expect(suspensions).toBeGreaterThan(runs(250));
    expect(discards).toBeGreaterThan(runs(100));
  });

  it('gives every request of a burst the results of the plain reference if runs compute several prompts', async () => {
    let joined = 0;
    await fc.assert(
      fc.asyncProperty(
        arrivals,
        fc.integer({ min: 2, max: 9 }),
        fc.constantFrom(0, 2, 1000),
        async (workload, slots, stored) => {
          // As on a card, most prompts fit a chunk.
          const wide = { ...shape(slots), prefillChunk: 24, maxPrefillChunks: 1 };
          const runner = new ScriptedRunner({ ...wide, joinsPrompts: true });
          const driver = new Driver(runner, { prefixStoreBytes: storeBytes(runner, stored) });
          const burst = workload.map(({ submission, at, abortAfter }) => ({
            submission: { ...submission, tenantId: 'one' },
            at: at < 40 ? 0 : 1,
            abortAfter,
          }));
          await play(driver, burst);
          joined += runner.joined.reduce((sum, prompts) => sum + prompts, 0);
          for (const arrival of burst) expectReference(driver, arrival, wide);
        },
      ),
      { numRuns: runs(100) },
    );
    expect(joined).toBeGreaterThan(runs(100));
  });

  it('computes the short prompts of a request in one run, and equal ones after the first', async () => {
    const runner = new ScriptedRunner({ ...shape(6), maxPrefillChunks: 4, joinsPrompts: true });
    const driver = new Driver(runner);
    const prompts = [
      [0, 1, 2],
      [3, 4],
      [0, 1, 2],
      [5, 6, 7, 8],
    ].map((ids) => ({
      tokens: Int32Array.from(ids),
      maxTokens: 2,
    }));
    driver.submit({ ...longPrompt('together', 4), prompts });
    await driver.finish();
    expect([runner.joined, runner.prefills]).toEqual([[3], [3]]);
  });

  it('computes a burst of 32 prompts in 7 runs of 6 steps if runs compute several prompts, else in a step each', async () => {
    const stepsFor = async (joinsPrompts: boolean) => {
      const runner = new ScriptedRunner({ ...shape(32), joinsPrompts });
      const driver = new Driver(runner);
      const first = (index: number) => driver.eventsOf(`${index}`).some(({ type }) => type === 'token');
      for (let index = 0; index < 32; index++) {
        const prompts = [{ tokens: Int32Array.of(index, 1), maxTokens: 40 }];
        driver.submit({ ...endless(`${index}`, 40), prompts });
      }
      let steps = 0;
      while (![...Array(32).keys()].every(first)) {
        await driver.step();
        steps++;
      }
      return { steps, joined: runner.joined };
    };
    expect(await stepsFor(false)).toEqual({ steps: 32, joined: [] });
    // Two chunks while nothing decodes, then a chunk: 12 prompts of two tokens in the first step.
    expect(await stepsFor(true)).toEqual({ steps: 6, joined: [8, 4, 4, 4, 4, 4, 4] });
  });

  it('computes two chunks per run, and one while a sequence decodes', async () => {
    const runner = new ScriptedRunner(shape(2));
    const driver = new Driver(runner);
    driver.submit(longPrompt('alone', 4 * CHUNK + 1));
    await driver.finish();
    expect(runner.prefills).toEqual([2 * CHUNK, 2 * CHUNK, 1]);
    driver.submit(endless('stream', 8));
    await driver.step();
    runner.prefills.length = 0;
    driver.submit(longPrompt('beside', 2 * CHUNK + 2));
    await driver.finish();
    expect(runner.prefills).toEqual([CHUNK, CHUNK, 2]);
  });
});
