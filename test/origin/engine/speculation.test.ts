import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Submission } from '../../../origin/engine/messages.ts';
import type { SpeculationSettings } from '../../../origin/engine/speculation.ts';
import { Driver } from './support/engine-driver.ts';
import { plainTranscript } from './support/reference-generation.ts';
import { EXACT, ScriptedRunner } from './support/scripted-runner.ts';
import { NEUTRAL, submission } from './support/submissions.ts';
import { ordered, transcribe } from './support/transcript.ts';
import { arrivals, expectBeginning, play, shape } from './support/workload.ts';

const greedy = { ...NEUTRAL, temperature: 0 };
const runnerOf = (slots: number, slow = false) =>
  new ScriptedRunner(
    { ...shape(slots), contextLength: 256 },
    { model: EXACT, offGrid: true, ...(slow ? { prefillTurns: 1, asyncDecode: true } : {}) },
  );

const anySpeculation: fc.Arbitrary<SpeculationSettings> = fc.record({
  maxTokens: fc.integer({ min: 1, max: 12 }),
  maxRows: fc.integer({ min: 1, max: 9 }),
});

describe('speculation on a model whose bits do not depend on the split into runs', () => {
  it('gives every request the output of the plain reference in every batch', async () => {
    let requests = 0;
    let drafts = 0;
    const check = async (
      workload: Parameters<typeof play>[1],
      slots: number,
      speculation: SpeculationSettings,
    ) => {
      const runner = runnerOf(slots, workload.length % 2 === 0);
      const driver = new Driver(runner, { speculation });
      await play(driver, workload);
      drafts += driver.reports
        .flatMap((report) => (report.type === 'step' ? report.reports : []))
        .filter(({ kind, rows, tokens }) => kind === 'decode' && tokens > rows).length;
      for (const { submission, abortAfter } of workload) {
        const transcript = transcribe(driver.eventsOf(submission.requestId), submission.choices);
        const plain = plainTranscript(submission, shape(slots), EXACT);
        if (abortAfter !== null && transcript.end === null) {
          expectBeginning(transcript, plain);
          continue;
        }
        requests++;
        expect(ordered(transcript)).toEqual(ordered(plain));
      }
    };
    await fc.assert(fc.asyncProperty(arrivals, fc.integer({ min: 1, max: 9 }), anySpeculation, check), {
      numRuns: 160,
    });
    expect(requests).toBeGreaterThan(600);
    expect(drafts).toBeGreaterThan(400);
  });
});

describe('speculation', () => {
  const repetitive = (requestId: string, fields: Partial<Submission> = {}) =>
    submission({
      requestId,
      prompts: [{ tokens: Int32Array.from({ length: 20 }, (_, at) => at % 7), maxTokens: 100 }],
      sampling: greedy,
      ignoreEos: true,
      ...fields,
    });
  const speculation: SpeculationSettings = { maxTokens: 7, maxRows: 1 };

  it('computes a repetitive text in a fraction of the runs', async () => {
    const runner = runnerOf(2);
    const driver = new Driver(runner, { speculation });
    driver.submit(repetitive('r'));
    await driver.finish();
    expect(runner.decodes.length + runner.prefills.length).toBeLessThan(60);
    expect(transcribe(driver.eventsOf('r'), 1).end).toEqual({ promptTokens: 20, completionTokens: 100 });
  });

  it('reports exactly how many tokens were drafted and accepted', async () => {
    const runner = runnerOf(2);
    const driver = new Driver(runner, { speculation });
    driver.submit(repetitive('r'));
    await driver.finish();
    const drafts = runner.prefills.slice(Math.ceil(20 / runner.shape.prefillChunk));
    const steps = driver.reports
      .flatMap((report) => (report.type === 'step' ? report.reports : []))
      .filter(({ kind }) => kind === 'decode');
    const sum = (of: (step: (typeof steps)[number]) => number) =>
      steps.reduce((all, step) => all + of(step), 0);
    // A run over a draft also computes the last token.
    expect(sum(({ drafted }) => drafted)).toBe(drafts.reduce((all, length) => all + length - 1, 0));
    // Every run gives one more token than it accepts; the prompt's last chunk has given the first.
    expect(sum(({ accepted }) => accepted)).toBe(100 - 1 - steps.length);
    expect(sum(({ accepted }) => accepted)).toBeGreaterThan(50);
  });

  it('stops while more than maxRows sequences decode', async () => {
    const runner = runnerOf(2);
    const driver = new Driver(runner, { speculation });
    driver.submit(repetitive('a', { prompts: [{ tokens: Int32Array.of(0), maxTokens: 50 }] }));
    driver.submit(repetitive('b', { prompts: [{ tokens: Int32Array.of(1), maxTokens: 150 }] }));
    while (driver.eventsOf('b').length < 3) await driver.step();
    runner.prefills.length = 0;
    while (driver.engine.status.running === 2) await driver.step();
    expect(runner.prefills).toEqual([]);
    await driver.finish();
    expect(runner.prefills.length).toBeGreaterThan(0);
  });

  it('stops its run if the request is aborted', async () => {
    const runner = runnerOf(1, true);
    const driver = new Driver(runner, { speculation });
    driver.submit(repetitive('r'));
    let runsDraft = false;
    while (!runsDraft) {
      const step = driver.step();
      runsDraft = runner.prefills.length > 4;
      if (runsDraft) driver.engine.abort('r');
      await step;
    }
    expect(driver.engine.idle).toBe(true);
    driver.engine.settle();
  });

  it('fails only its request if its run fails, with a retryable error', async () => {
    let broken = false;
    const runner = new ScriptedRunner(shape(1), {
      model: EXACT,
      offGrid: true,
      beforeRun: () => {
        if (broken) throw new Error('the device is gone');
      },
    });
    const driver = new Driver(runner, { speculation });
    driver.submit(
      repetitive('r', { prompts: [{ tokens: Int32Array.from([0, 1, 2, 0, 1, 2]), maxTokens: 9 }] }),
    );
    await driver.step();
    broken = true;
    await driver.step();
    broken = false;
    driver.submit(submission({ requestId: 'next' }));
    await driver.finish();
    expect(runner.decodes.length).toBeGreaterThan(0);
    expect(driver.eventsOf('r').at(-1)).toMatchObject({ type: 'error', retryable: true });
    expect(driver.eventsOf('next').at(-1)).toMatchObject({ type: 'done' });
  });
});
