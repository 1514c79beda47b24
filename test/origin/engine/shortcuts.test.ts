import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Submission } from '../../../origin/engine/messages.ts';
import { NO_SHORTCUTS, type Shortcuts } from '../../../origin/engine/shortcuts.ts';
import { NEUTRAL_SAMPLING } from '../../../shared/sampling.ts';
import { BOS, VOCABULARY } from './support/alphabet.ts';
import { Driver } from './support/driver.ts';
import { grammarOf } from './support/placed-grammar.ts';
import { plainTranscript } from './support/plain-generation.ts';
import { EXACT, ROUNDING, type ScriptedModel, ScriptedRunner } from './support/scripted-runner.ts';
import { submission } from './support/submissions.ts';
import { ordered, transcribe } from './support/transcript.ts';
import { arrivals, expectBeginning, play, shape } from './support/workload.ts';

const greedy = { ...NEUTRAL_SAMPLING, temperature: 0 };
const runnerOf = (slots: number, model: ScriptedModel, slow = false) =>
  new ScriptedRunner(
    { ...shape(slots), contextLength: 256 },
    { model, offGrid: true, ...(slow ? { prefillTurns: 1, asyncDecode: true } : {}) },
  );

const anyShortcuts: fc.Arbitrary<Shortcuts> = fc.record({
  drafts: fc.integer({ min: 1, max: 12 }),
  draftRows: fc.integer({ min: 1, max: 9 }),
  forcedTokens: fc.boolean(),
  cacheGenerated: fc.boolean(),
});

describe('with every shortcut, on a model whose bits do not depend on the split into runs', () => {
  it('a request among any others is answered as by the plain reference', async () => {
    let requests = 0;
    let verified = 0;
    const check = async (workload: Parameters<typeof play>[1], slots: number, shortcuts: Shortcuts) => {
      const runner = runnerOf(slots, EXACT, workload.length % 2 === 0);
      const driver = new Driver(runner, { shortcuts });
      await play(driver, workload);
      verified += driver.reports
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
    await fc.assert(fc.asyncProperty(arrivals, fc.integer({ min: 1, max: 9 }), anyShortcuts, check), {
      numRuns: 160,
    });
    expect(requests).toBeGreaterThan(600);
    expect(verified).toBeGreaterThan(400);
  });
});

describe('speculation', () => {
  const round = (requestId: string, fields: Partial<Submission> = {}) =>
    submission({
      requestId,
      prompts: [{ tokens: Int32Array.from({ length: 20 }, (_, at) => at % 7), maxTokens: 100 }],
      sampling: greedy,
      ignoreEos: true,
      ...fields,
    });
  const speculating = { ...NO_SHORTCUTS, drafts: 7 };

  it('computes a text that repeats itself in a fraction of the runs', async () => {
    const runner = runnerOf(2, EXACT);
    const driver = new Driver(runner, { shortcuts: speculating });
    driver.submit(round('r'));
    await driver.finish();
    expect(runner.decodes.length + runner.prefills.length).toBeLessThan(60);
    expect(transcribe(driver.eventsOf('r'), 1).end).toEqual({ promptTokens: 20, completionTokens: 100 });
  });

  it('reports how many tokens it guessed and how many came true, down to the last token', async () => {
    const runner = runnerOf(2, EXACT);
    const driver = new Driver(runner, { shortcuts: speculating });
    driver.submit(round('r'));
    while (driver.eventsOf('r').every(({ type }) => type !== 'token')) await driver.step();
    runner.prefills.length = 0;
    await driver.finish();
    const steps = driver.reports
      .flatMap((report) => (report.type === 'step' ? report.reports : []))
      .filter(({ kind }) => kind === 'decode');
    const sum = (of: (step: (typeof steps)[number]) => number) =>
      steps.reduce((all, step) => all + of(step), 0);
    // A run that verifies computes the last token along with the guesses.
    expect(sum(({ drafted }) => drafted)).toBe(runner.prefills.reduce((all, length) => all + length - 1, 0));
    // Every step brings one token of its own; the prompt's last chunk has brought the first.
    expect(sum(({ accepted }) => accepted)).toBe(100 - 1 - steps.length);
    expect(sum(({ accepted }) => accepted)).toBeGreaterThan(50);
  });

  it('leaves off while more sequences are decoding than it is meant for', async () => {
    const runner = runnerOf(2, EXACT);
    const driver = new Driver(runner, { shortcuts: speculating });
    driver.submit(round('a', { prompts: [{ tokens: Int32Array.of(0), maxTokens: 50 }] }));
    driver.submit(round('b', { prompts: [{ tokens: Int32Array.of(1), maxTokens: 150 }] }));
    while (driver.eventsOf('b').length < 3) await driver.step();
    runner.prefills.length = 0;
    while (driver.engine.status.running === 2) await driver.step();
    expect(runner.prefills).toEqual([]);
    await driver.finish();
    expect(runner.prefills.length).toBeGreaterThan(0);
  });

  it('stops its run when the request is given up', async () => {
    const runner = runnerOf(1, EXACT, true);
    const driver = new Driver(runner, { shortcuts: speculating });
    driver.submit(round('r'));
    while (runner.prefills.length <= 3) {
      const step = driver.step();
      if (runner.prefills.length > 3) driver.engine.abort('r');
      await step;
    }
    expect(driver.engine.idle).toBe(true);
    driver.engine.settle();
  });

  it('that fails fails its request alone, with a retryable error', async () => {
    let broken = false;
    const runner = new ScriptedRunner(shape(1), {
      model: EXACT,
      offGrid: true,
      beforeRun: () => {
        if (broken) throw new Error('the device is gone');
      },
    });
    const driver = new Driver(runner, { shortcuts: speculating });
    driver.submit(round('r', { prompts: [{ tokens: Int32Array.from([0, 1, 2, 0, 1, 2]), maxTokens: 9 }] }));
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

describe('a finished text', () => {
  const first = submission({
    requestId: 'first',
    prompts: [{ tokens: Int32Array.from({ length: 10 }, (_, at) => at % 7), maxTokens: 30 }],
    sampling: greedy,
    ignoreEos: true,
  });

  async function continued(cacheGenerated: boolean) {
    const driver = new Driver(runnerOf(2, EXACT), { shortcuts: { ...NO_SHORTCUTS, cacheGenerated } });
    driver.submit(first);
    await driver.finish();
    const ids = transcribe(driver.eventsOf('first'), 1).choices.get(0)?.ids ?? [];
    const tokens = Int32Array.from([...first.prompts[0]!.tokens, ...ids, BOS, 1]);
    const second = submission({ requestId: 'second', prompts: [{ tokens, maxTokens: 8 }] });
    driver.submit(second);
    await driver.finish();
    const transcript = transcribe(driver.eventsOf('second'), 1);
    expect(ordered(transcript)).toEqual(ordered(plainTranscript(second, shape(2), EXACT)));
    return driver.eventsOf('second').at(-1);
  }

  it('is reused by the prompt that continues it, where that is wanted', async () => {
    expect(await continued(true)).toMatchObject({ usage: { promptTokens: 42, cachedTokens: 32 } });
  });

  it('leaves its prompt alone by default', async () => {
    expect(await continued(false)).toMatchObject({ usage: { cachedTokens: 8 } });
  });
});

describe('greedy choices', () => {
  it('are computed once, heard of as often as asked for, and all counted', async () => {
    const runner = runnerOf(8, ROUNDING);
    const driver = new Driver(runner);
    driver.submit(submission({ requestId: 'r', choices: 5, sampling: greedy, ignoreEos: true, logprobs: 1 }));
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

  it('need one place in the queue', () => {
    const driver = new Driver(runnerOf(1, ROUNDING), { maxWaiting: 0 });
    driver.submit(submission({ requestId: 'r', choices: 5, sampling: greedy }));
    expect(driver.refused.size).toBe(0);
  });
});

describe('forced tokens', () => {
  const place = fc.oneof(
    { weight: 5, arbitrary: fc.tuple(fc.nat(11)) },
    { weight: 1, arbitrary: fc.uniqueArray(fc.nat(11), { minLength: 2, maxLength: 4 }) },
  );
  const constrained = fc.record({
    places: fc.array(place, { minLength: 1, maxLength: 30, size: 'max' }),
    maxTokens: fc.integer({ min: 1, max: 40 }),
    minTokens: fc.constantFrom(0, 0, 4),
    stop: fc.constantFrom<readonly string[]>([], [], ['cab', 'abc']),
    logprobs: fc.constantFrom(null, 2),
    temperature: fc.constantFrom(0, 1),
    seed: fc.nat(99),
  });
  const shortcuts = { ...NO_SHORTCUTS, forcedTokens: true };

  async function answer(driver: Driver, requests: readonly Submission[]): Promise<unknown[]> {
    for (const request of requests) {
      driver.submit(request);
      await new Promise(setImmediate);
      await driver.step();
    }
    await driver.finish();
    return requests.map(({ requestId }) => ordered(transcribe(driver.eventsOf(requestId), 1)));
  }

  it('are those that are sampled without, and depend on nobody else', async () => {
    let saved = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(constrained, { minLength: 1, maxLength: 6, size: 'max' }), async (cases) => {
        const requests = cases.map(({ places, maxTokens, temperature, ...fields }, index) =>
          submission({
            ...fields,
            requestId: `${index}`,
            prompts: [{ tokens: Int32Array.of(BOS, index), maxTokens }],
            sampling: { ...NEUTRAL_SAMPLING, temperature },
            constraint: JSON.stringify(places),
          }),
        );
        const compile = (constraint: string) => grammarOf(JSON.parse(constraint), VOCABULARY);
        const driver = (model: ScriptedModel, slots: number, options: object) =>
          new Driver(runnerOf(slots, model), { compile, ...options });
        const usual = await answer(driver(EXACT, 3, {}), requests);
        expect(await answer(driver(EXACT, 3, { shortcuts }), requests)).toEqual(usual);

        const together = driver(ROUNDING, 3, { shortcuts });
        const inCompany = await answer(together, requests);
        for (const [index, request] of requests.entries()) {
          const [alone] = await answer(driver(ROUNDING, 1, { shortcuts }), [request]);
          expect(inCompany[index]).toEqual(alone);
        }
        for (const report of together.reports) {
          if (report.type !== 'step') continue;
          for (const { kind, rows, tokens } of report.reports) if (kind === 'decode') saved += tokens - rows;
        }
      }),
      { numRuns: 120 },
    );
    expect(saved).toBeGreaterThan(1000);
  });
});
