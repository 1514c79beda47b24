import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { runs } from '../../support/random.ts';
import { Driver, storeBytes } from './support/engine-driver.ts';
import { plainTranscript } from './support/reference-generation.ts';
import { ScriptedRunner } from './support/scripted-runner.ts';
import { submission } from './support/submissions.ts';
import { ordered, transcribe } from './support/transcript.ts';
import { arrivals, expectReference, play, shape } from './support/workload.ts';

const reference = (slots: number) => ({ ...shape(slots), hasStates: true });

describe('a model whose slots have states', () => {
  it('gives every request the output of the plain reference in every batch, suspended, restored or rewound', async () => {
    const seen = { requests: 0, restored: 0, suspensions: 0, banned: 0, healed: 0, forked: 0 };
    await fc.assert(
      fc.asyncProperty(
        arrivals,
        fc.integer({ min: 1, max: 9 }),
        fc.boolean(),
        // Chunks in the prefix store: none, so few that they are evicted all the time, or all.
        fc.constantFrom(0, 2, 5, 1000),
        async (workload, slots, slow, stored) => {
          const timing = slow ? { turns: 1, asyncDecode: true } : {};
          const runner = new ScriptedRunner(shape(slots), { ...timing, states: true });
          const driver = new Driver(runner, { prefixStoreBytes: storeBytes(runner, stored) });
          await play(driver, workload);
          seen.restored += driver.engine.status.prefixStore?.restoredTokens ?? 0;
          seen.suspensions += driver.engine.status.suspensions ?? 0;
          for (const arrival of workload) {
            const { submission } = arrival;
            if (!expectReference(driver, arrival, reference(slots))) continue;
            seen.requests++;
            if ((submission.bannedPhrases?.length ?? 0) > 0) seen.banned++;
            if (submission.prompts.some(({ healFrom }) => healFrom !== undefined)) seen.healed++;
            if (submission.choices > 1) seen.forked++;
          }
        },
      ),
      { numRuns: runs(60) },
    );
    for (const count of Object.values(seen)) expect(count).toBeGreaterThan(runs(50));
  });

  const tokens = (length: number) => Int32Array.from({ length }, (_, at) => (at * 5) % 11);
  const ask = (requestId: string, length: number) =>
    submission({ requestId, prompts: [{ tokens: tokens(length), maxTokens: 4 }] });

  async function cachedTokens(stored: number, ...lengths: readonly number[]): Promise<readonly unknown[]> {
    const runner = new ScriptedRunner(shape(2), { states: true });
    const driver = new Driver(runner, { prefixStoreBytes: stored && storeBytes(runner, stored) });
    for (const [index, length] of lengths.entries()) {
      driver.submit(ask(`${index}`, length));
      await driver.finish();
      const transcript = transcribe(driver.eventsOf(`${index}`), 1);
      expect(ordered(transcript)).toEqual(ordered(plainTranscript(ask('', length), reference(2))));
    }
    return lengths.map((_, index) => {
      const done = driver.eventsOf(`${index}`).at(-1)!;
      return done.type === 'done' ? done.usage.cachedTokens : done;
    });
  }

  it('goes on from the longest prefix with KV and a state, and reports it as cached', async () => {
    // Runs of two chunks of 8 leave states at 16, 32 and at the end.
    expect(await cachedTokens(1000, 43, 43, 55, 30)).toEqual([0, 43, 32, 16]);
  });

  it('keeps states at distances from the end that double, and where other prompts have left a known one', async () => {
    // Runs end at 16, 32, 48 and 59. The state of 16 is kept once another prompt ends before 32.
    expect(await cachedTokens(1000, 59, 59, 50, 30, 29)).toEqual([0, 59, 48, 0, 16]);
  });

  it('computes every prompt whole without a store, because a free slot has a state beyond its prompt', async () => {
    expect(await cachedTokens(0, 43, 43, 55)).toEqual([0, 0, 0]);
  });
});
