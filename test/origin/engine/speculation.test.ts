import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Submission } from '../../../origin/engine/messages.ts';
import type { SpeculationSettings } from '../../../origin/engine/speculation.ts';
import { Driver } from './support/engine-driver.ts';
import { plainTranscript } from './support/reference-generation.ts';
import { EXACT, ROUNDING, type ScriptedModel, ScriptedRunner } from './support/scripted-runner.ts';
import { NEUTRAL, submission } from './support/submissions.ts';
import { ordered, transcribe } from './support/transcript.ts';
import { BOS } from './support/vocabulary.ts';
import { arrivals, expectBeginning, play, shape } from './support/workload.ts';

const greedy = { ...NEUTRAL, temperature: 0 };
const runnerOf = (slots: number, model: ScriptedModel, slow = false) =>
  new ScriptedRunner(
    { ...shape(slots), contextLength: 256 },
    { model, offGrid: true, ...(slow ? { prefillTurns: 1, asyncDecode: true } : {}) },
  );

const anySpeculation: fc.Arbitrary<SpeculationSettings> = fc.record({
  maxTokens: fc.integer({ min: 1, max: 12 }),
  maxRows: fc.integer({ min: 1, max: 9 }),
});

describe('speculation on a model whose bits do not depend on the split into runs', () => {
  it('gives every request the output of the plain reference, whatever else runs', async () => {
    let requests = 0;
    let drafts = 0;
    const check = async (
      workload: Parameters<typeof play>[1],
      slots: number,
      speculation: SpeculationSettings,
    ) => {
      const runner = runnerOf(slots, EXACT, workload.length % 2 === 0);
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
    const runner = runnerOf(2, EXACT);
    const driver = new Driver(runner, { speculation });
    driver.submit(repetitive('r'));
    await driver.finish();
    expect(runner.decodes.length + runner.prefills.length).toBeLessThan(60);
    expect(transcribe(driver.eventsOf('r'), 1).end).toEqual({ promptTokens: 20, completionTokens: 100 });
  });

  it('reports exactly how many tokens were drafted and accepted', async () => {
    const runner = runnerOf(2, EXACT);
    const driver = new Driver(runner, { speculation });
    driver.submit(repetitive('r'));
    while (driver.eventsOf('r').every(({ type }) => type !== 'token')) await driver.step();
    runner.prefills.length = 0;
    await driver.finish();
    const steps = driver.reports
      .flatMap((report) => (report.type === 'step' ? report.reports : []))
      .filter(({ kind }) => kind === 'decode');
    const sum = (of: (step: (typeof steps)[number]) => number) =>
      steps.reduce((all, step) => all + of(step), 0);
    // A run over a draft also computes the last token.
    expect(sum(({ drafted }) => drafted)).toBe(runner.prefills.reduce((all, length) => all + length - 1, 0));
    // Every run gives one more token than it accepts; the prompt's last chunk has given the first.
    expect(sum(({ accepted }) => accepted)).toBe(100 - 1 - steps.length);
    expect(sum(({ accepted }) => accepted)).toBeGreaterThan(50);
  });

  it('stops while more than maxRows sequences decode', async () => {
    const runner = runnerOf(2, EXACT);
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
    const runner = runnerOf(1, EXACT, true);
    const driver = new Driver(runner, { speculation });
    driver.submit(repetitive('r'));
    while (runner.prefills.length <= 3) {
      const step = driver.step();
      if (runner.prefills.length > 3) driver.engine.abort('r');
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

describe('a finished request', () => {
  const first = submission({
    requestId: 'first',
    prompts: [{ tokens: Int32Array.from({ length: 10 }, (_, at) => at % 7), maxTokens: 30 }],
    sampling: greedy,
    ignoreEos: true,
  });

  it('leaves only its prompt in the prefix cache, never generated tokens', async () => {
    const driver = new Driver(runnerOf(2, EXACT));
    driver.submit(first);
    await driver.finish();
    const ids = transcribe(driver.eventsOf('first'), 1).choices.get(0)?.ids ?? [];
    const tokens = Int32Array.from([...first.prompts[0]!.tokens, ...ids, BOS, 1]);
    const second = submission({ requestId: 'second', prompts: [{ tokens, maxTokens: 8 }] });
    driver.submit(second);
    await driver.finish();
    const transcript = transcribe(driver.eventsOf('second'), 1);
    expect(ordered(transcript)).toEqual(ordered(plainTranscript(second, shape(2), EXACT)));
    expect(driver.eventsOf('second').at(-1)).toMatchObject({ usage: { promptTokens: 42, cachedTokens: 8 } });
  });
});

describe('greedy choices', () => {
  it('are computed once, sent as often as requested, and all counted', async () => {
    const runner = runnerOf(8, ROUNDING);
    const driver = new Driver(runner);
    driver.submit(
      submission({ requestId: 'r', choices: 5, sampling: greedy, ignoreEos: true, topLogprobs: 1 }),
    );
    await driver.finish();
    const { choices, end } = transcribe(driver.eventsOf('r'), 5);
    expect(choices.size).toBe(5);
    for (const choice of choices.values()) {
      expect(choice).toEqual({ ...choices.get(0), finish: choice.finish });
      expect(choice.tokens).toHaveLength(8);
    }
    expect(end).toEqual({ promptTokens: 4, completionTokens: 40 });
    expect(runner.decodes).toHaveLength(7);
    expect(runner.decodes.every(({ rows }) => rows === runner.shape.minRows)).toBe(true);
  });

  it('take one place in the waiting queue', () => {
    const driver = new Driver(runnerOf(1, ROUNDING), { maxWaiting: 0 });
    driver.submit(submission({ requestId: 'r', choices: 5, sampling: greedy }));
    expect(driver.refused.size).toBe(0);
  });
});
