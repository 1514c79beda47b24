import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Driver } from './support/engine-driver.ts';
import { plainTranscript } from './support/reference-generation.ts';
import { ScriptedRunner } from './support/scripted-runner.ts';
import { ordered, transcribe } from './support/transcript.ts';
import { arrivals, expectBeginning, play, shape } from './support/workload.ts';

describe('batch invariance', () => {
  it('gives every request the tokens, text, logprobs and finish of the plain reference in every batch', async () => {
    let requests = 0;
    await fc.assert(
      fc.asyncProperty(
        arrivals,
        fc.integer({ min: 1, max: 9 }),
        fc.boolean(),
        async (workload, slots, slow) => {
          const runner = new ScriptedRunner(shape(slots), slow ? { prefillTurns: 1, asyncDecode: true } : {});
          const driver = new Driver(runner);
          await play(driver, workload);
          for (const { submission, abortAfter } of workload) {
            const transcript = transcribe(driver.eventsOf(submission.requestId), submission.choices);
            if (abortAfter !== null && transcript.end === null) {
              expectBeginning(transcript, plainTranscript(submission, shape(slots)));
              continue;
            }
            requests++;
            expect(ordered(transcript)).toEqual(ordered(plainTranscript(submission, shape(slots))));
          }
        },
      ),
      { numRuns: 160 },
    );
    expect(requests).toBeGreaterThan(1000);
  });
});
