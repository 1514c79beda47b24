import { setImmediate } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import type { Submission } from '../../../origin/engine/messages.ts';
import { Driver, storeBytes } from './support/engine-driver.ts';
import { CHUNK, endless, longPrompt, shape, tokensSoFar } from './support/long-requests.ts';
import { plainTranscript } from './support/reference-generation.ts';
import { ScriptedRunner } from './support/scripted-runner.ts';
import { ordered, transcribe } from './support/transcript.ts';

const TURNS = 20;
const LONG = longPrompt('long', 20 * CHUNK, 'loud');

/** Makes a step and submits a request while the model computes the step's chunk. */
async function stepWith(driver: Driver, ...submissions: readonly Submission[]): Promise<void> {
  const step = driver.step();
  for (const submission of submissions) {
    for (let turn = 0; turn < 3; turn++) await setImmediate();
    driver.submit(submission);
  }
  await step;
}

/** Each run takes 4 ms, of which some have passed when it can be stopped. */
function startTimed(slots: number, passedMs = 1) {
  const passing = (ms: number) => () => {
    driver.now += ms;
  };
  const options = { turns: TURNS, beforeRun: passing(passedMs), afterRun: passing(4 - passedMs) };
  const runner = new ScriptedRunner(shape(slots), options);
  const driver: Driver = new Driver(runner);
  return { runner, driver };
}

function start(passedMs?: number) {
  const started = startTimed(8, passedMs);
  started.driver.submit(LONG);
  return started;
}

describe('a chunk of a long prompt', () => {
  it('is stopped for a short prompt of another tenant, which is computed at once', async () => {
    const { runner, driver } = start();
    await driver.step();
    await stepWith(driver, endless('short', 4, 'quiet'));
    expect(runner.prefills).toEqual([CHUNK, CHUNK, 2]);
    expect(tokensSoFar(driver, 'short')).toBeGreaterThan(0);
    await driver.step();
    expect(runner.prefills).toEqual([CHUNK, CHUNK, 2, CHUNK]);
  });

  it('has the same tokens as one that was not stopped', async () => {
    const { runner, driver } = start();
    for (let serial = 0; tokensSoFar(driver, 'long') === 0; serial++) {
      await stepWith(driver, ...(serial % 3 === 0 ? [endless(`short ${serial}`, 1, `quiet ${serial}`)] : []));
    }
    await driver.finish();
    expect(runner.prefills.filter((length) => length === CHUNK).length).toBeGreaterThan(22);
    expect(ordered(transcribe(driver.eventsOf('long'), 1))).toEqual(
      ordered(plainTranscript(LONG, runner.shape)),
    );
  });

  it('leaves what was restored before it, also beside runs with an idle row for its slot', async () => {
    const runner = new ScriptedRunner(shape(6), { turns: TURNS });
    const driver = new Driver(runner, { prefixStoreBytes: storeBytes(runner, 20) });
    const prompt = (requestId: string, chunks: number, cacheNamespace: string) =>
      ({ ...longPrompt(requestId, chunks * CHUNK, 'loud'), cacheNamespace }) satisfies Submission;
    driver.submit(prompt('first', 10, 'same'));
    await driver.finish();
    for (const name of ['before', 'between', 'after', 'last', 'other', 'end']) {
      const stream = { ...prompt(name, 30, name), cachePrompt: false };
      driver.submit({ ...stream, prompts: stream.prompts.map((one) => ({ ...one, maxTokens: 500 })) });
      while (tokensSoFar(driver, name) === 0) await driver.step();
    }
    for (const name of ['between', 'last', 'end']) driver.engine.abort(name);
    const second = prompt('second', 20, 'same');
    driver.submit(second);
    await stepWith(driver, endless('short', 4, 'quiet'));
    expect(runner.prefills.slice(-2)).toEqual([CHUNK, 2]);
    await driver.finish();
    expect(ordered(transcribe(driver.eventsOf('second'), 1))).toEqual(
      ordered(plainTranscript(second, runner.shape)),
    );
  });

  it.each([
    ['a short prompt of its own tenant', endless('own', 4, 'loud')],
    ['a long prompt', longPrompt('other', 10 * CHUNK, 'quiet')],
    ['flex work', { ...endless('flex', 4, 'quiet'), flex: true }],
  ])('is not stopped for %s', async (_, submission) => {
    const { runner, driver } = start();
    await driver.step();
    await stepWith(driver, submission);
    expect(runner.prefills.slice(0, 2)).toEqual([CHUNK, CHUNK]);
    driver.engine.abort(submission.requestId);
    await driver.finish();
    expect(runner.prefills.filter((length) => length === CHUNK)).toHaveLength(20);
  });

  it('is not stopped if more than half of it is done', async () => {
    const { runner, driver } = start(3);
    await driver.step();
    await stepWith(driver, endless('short', 4, 'quiet'));
    await driver.finish();
    expect(runner.prefills).toEqual([CHUNK, CHUNK, 2, ...Array<number>(18).fill(CHUNK)]);
  });

  it('counts if it was done before it could be stopped', async () => {
    const { runner, driver } = start();
    await driver.step();
    const prefill = runner.prefill.bind(runner);
    runner.prefill = (chunk) => prefill(chunk, new AbortController().signal);
    await stepWith(driver, endless('short', 4, 'quiet'));
    await driver.finish();
    expect(runner.prefills.filter((length) => length === CHUNK)).toHaveLength(20);
  });
});

describe('a chunk of a tenant that holds all slots', () => {
  const SLOTS = 3;

  /** Submits a request during the first chunk of several prompts; also returns moved positions of KV. */
  async function beside(submission: Submission) {
    const runner = new ScriptedRunner(shape(SLOTS), { turns: TURNS });
    const moved: number[] = [];
    const { read } = runner.kvBytes;
    runner.kvBytes.read = (slot, start, end, bytes) => {
      moved.push(end - start);
      read(slot, start, end, bytes);
    };
    const driver = new Driver(runner, { prefixStoreBytes: storeBytes(runner, 200) });
    const names = ['first', 'second', 'third', 'fourth'];
    const long = names.map((name) => ({ ...longPrompt(name, 4 * CHUNK, 'loud'), cachePrompt: false }));
    for (const one of long) driver.submit(one);
    await stepWith(driver, { ...submission, cachePrompt: false });
    const early = { prefills: [...runner.prefills], moved: [...moved] };
    await driver.finish();
    for (const one of long) {
      expect(ordered(transcribe(driver.eventsOf(one.requestId), 1))).toEqual(
        ordered(plainTranscript(one, runner.shape)),
      );
    }
    return early;
  }

  it('is stopped for a short prompt that waits, which takes the slot of a prompt that has not begun', async () => {
    expect(await beside(endless('short', 4, 'quiet'))).toEqual({ prefills: [CHUNK, 2], moved: [] });
  });

  it('is not stopped for a prompt that is only scored', async () => {
    const score = { ...endless('score', 0, 'quiet'), promptTopLogprobs: 0 };
    expect((await beside(score)).prefills).toEqual([CHUNK]);
  });
});

describe('a decode run of many rows', () => {
  const ROWS = 20;
  const crowd = (length: number) => ({ ...endless('crowd', length, 'loud'), choices: ROWS });

  async function decoding(maxTokens: number, rows = ROWS) {
    const { runner, driver } = startTimed(rows + 2);
    driver.submit({ ...crowd(maxTokens), choices: rows });
    while (tokensSoFar(driver, 'crowd') < 3 * rows) await driver.step();
    return { runner, driver };
  }

  it('is stopped for a short prompt of another tenant, which is computed at once', async () => {
    const { runner, driver } = await decoding(1000);
    const before = tokensSoFar(driver, 'crowd');
    const runs = runner.decodes.length;
    await stepWith(driver, endless('short', 4, 'quiet'));
    expect(tokensSoFar(driver, 'crowd')).toBe(before);
    await driver.step();
    expect(tokensSoFar(driver, 'short')).toBeGreaterThan(0);
    expect(runner.prefills.at(-1)).toBe(2);
    expect(runner.decodes.length).toBe(runs + 2);
  });

  it('has the same tokens as one that was not stopped', async () => {
    const { runner, driver } = await decoding(60);
    for (let serial = 0; !driver.eventsOf('crowd').some(({ type }) => type === 'done'); serial++) {
      await stepWith(driver, ...(serial % 3 === 0 ? [endless(`short ${serial}`, 1, `quiet ${serial}`)] : []));
    }
    await driver.finish();
    expect(runner.decodes.filter(({ rows }) => rows >= ROWS).length).toBeGreaterThan(62);
    expect(ordered(transcribe(driver.eventsOf('crowd'), ROWS))).toEqual(
      ordered(plainTranscript(crowd(60), runner.shape)),
    );
  });

  it.each([
    ['the slot of a flex sequence', { ...crowd(60), flex: true }],
    ['a slot of a tenant above its share, whose other choices wait', { ...crowd(60), choices: 2 * ROWS }],
  ])('is stopped for a prompt that gets %s, and its tokens stay the same', async (_, submission) => {
    const runner = new ScriptedRunner(shape(ROWS), { turns: TURNS });
    const driver = new Driver(runner, { prefixStoreBytes: storeBytes(runner, 200) });
    driver.submit(submission);
    while (tokensSoFar(driver, 'crowd') < 3 * ROWS) await driver.step();
    const before = tokensSoFar(driver, 'crowd');
    await stepWith(driver, endless('short', 4, 'quiet'));
    expect(tokensSoFar(driver, 'crowd')).toBe(before);
    await driver.step();
    expect(tokensSoFar(driver, 'short')).toBeGreaterThan(0);
    await driver.finish();
    expect(driver.engine.status.suspensions).toBeGreaterThan(0);
    expect(ordered(transcribe(driver.eventsOf('crowd'), submission.choices))).toEqual(
      ordered(plainTranscript(submission, runner.shape)),
    );
  });

  it('is not stopped if it has few rows', async () => {
    const { driver } = await decoding(1000, 8);
    const before = tokensSoFar(driver, 'crowd');
    await stepWith(driver, endless('short', 4, 'quiet'));
    expect(tokensSoFar(driver, 'crowd')).toBe(before + 8);
  });
});
