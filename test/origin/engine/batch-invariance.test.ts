import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { runs } from '../../support/random.ts';
import { Driver, storeBytes } from './support/engine-driver.ts';
import { CHUNK, endless, longPrompt } from './support/long-requests.ts';
import { plainTranscript } from './support/reference-generation.ts';
import { ScriptedRunner } from './support/scripted-runner.ts';
import { ordered, transcribe } from './support/transcript.ts';
import { arrivals, expectBeginning, play, shape } from './support/workload.ts';

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
          for (const { submission, abortAfter } of workload) {
            const transcript = transcribe(driver.eventsOf(submission.requestId), submission.choices);
            if (abortAfter !== null && transcript.end === null) {
              expectBeginning(transcript, plainTranscript(submission, shape(slots)));
              continue;
            }
            requests++;
            for (const event of driver.eventsOf(submission.requestId)) {
              if (event.type !== 'started') continue;
              if (event.cachedTokens === submission.prompts[event.prompt]?.tokens.length) wholePrompts++;
            }
            expect(ordered(transcript)).toEqual(ordered(plainTranscript(submission, shape(slots))));
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
