import { describe, expect, it } from 'vitest';
import type { Submission } from '../../../../origin/engine/messages.ts';
import type { KvBytes } from '../../../../origin/model/model-runner.ts';
import { Driver, STEP_MS, storeBytes } from '../support/engine-driver.ts';
import { CHUNK, endless, ends, longPrompt, shape, tokensSoFar } from '../support/long-requests.ts';
import { plainTranscript } from '../support/reference-generation.ts';
import { type ScriptedOptions, ScriptedRunner } from '../support/scripted-runner.ts';
import { ordered, transcribe } from '../support/transcript.ts';

const ROOM = 2 ** 20;

const flex = (submission: Submission): Submission => ({ ...submission, flex: true });

function start(slots: number, prefixStoreBytes = ROOM, options: ScriptedOptions = {}) {
  const runner = new ScriptedRunner(shape(slots), options);
  return new Driver(runner, { prefixStoreBytes });
}

/** Each run takes a millisecond, so that time is shared. */
function startTimed(slots: number) {
  const driver: Driver = start(slots, ROOM, {
    beforeRun: () => {
      driver.now++;
    },
  });
  return driver;
}

const steps = async (driver: Driver, count: number) => {
  for (let step = 0; step < count; step++) await driver.step();
};

/** Requires the whole output of the plain reference. */
function expectWhole(driver: Driver, submission: Submission, slots: number): void {
  const transcript = transcribe(driver.eventsOf(submission.requestId), submission.choices);
  expect(ordered(transcript)).toEqual(ordered(plainTranscript(submission, shape(slots))));
}

describe('a flex sequence', () => {
  it('gives its slot to an interactive request within one step, the youngest first, and the last keeps its slot', async () => {
    const driver = start(4);
    const work = Array.from({ length: 6 }, (_, index) => flex(endless(`flex ${index}`, 40)));
    for (const one of work) driver.submit(one);
    await steps(driver, 8);
    const before = [3, 2, 1, 0].map((index) => tokensSoFar(driver, `flex ${index}`));
    for (const name of ['a', 'b', 'c']) driver.submit(endless(name, 30));
    await driver.step();
    expect(driver.engine.status).toMatchObject({ running: 4, suspended: 3, suspensions: 3 });
    await steps(driver, 3);
    expect([3, 2, 1].map((index) => tokensSoFar(driver, `flex ${index}`))).toEqual(before.slice(0, 3));
    for (const name of ['a', 'b', 'c']) expect(tokensSoFar(driver, name)).toBeGreaterThan(0);
    driver.submit(endless('d', 30));
    await driver.step();
    expect(driver.engine.status).toMatchObject({ suspended: 3, waiting: 3 });
    await driver.finish();
    for (const one of work) expectWhole(driver, one, 4);
  });

  it('takes every free slot, and waits while interactive requests need them', async () => {
    const driver = start(2);
    for (const name of ['a', 'b', 'c', 'd']) driver.submit(endless(name, 20));
    await steps(driver, 3);
    for (let index = 0; index < 2; index++) driver.submit(flex(endless(`flex ${index}`, 20)));
    await steps(driver, 17);
    expect(tokensSoFar(driver, 'flex 1')).toBe(0);
    await driver.finish();
    expect(driver.engine.status.suspensions).toBe(0);
  });

  it('takes no place in the waiting queue from interactive requests, whose slots it holds', () => {
    const driver = new Driver(new ScriptedRunner(shape(2)), { prefixStoreBytes: ROOM, maxWaiting: 1 });
    for (const name of ['0', '1', '2', '3']) driver.submit(flex(endless(`flex ${name}`, 40)));
    expect([...driver.refused.keys()]).toEqual(['flex 3']);
    for (const name of ['a', 'b', 'c']) driver.submit(endless(name, 40));
    // One takes the slot of a flex sequence, one waits.
    expect([...driver.refused.keys()]).toEqual(['flex 3', 'c']);
  });

  it('keeps one slot under an endless load of interactive requests, one sequence after the other', async () => {
    const slots = 3;
    const driver = startTimed(slots);
    const work = Array.from({ length: 5 }, (_, index) => flex(endless(`flex ${index}`, 10)));
    for (const one of work) driver.submit(one);
    let sent = 0;
    for (let step = 0; step < 2000 && ends(driver, 'flex 4') === null; step++) {
      while (driver.engine.status.waiting < 4 + 5) driver.submit(endless(`${sent++}`, 10));
      await driver.step();
    }
    expect(sent).toBeGreaterThan(20);
    for (const one of work) expectWhole(driver, one, slots);
  });

  it('gives up a single slot after 32 steps, and continues in it later', async () => {
    const driver = start(1);
    const work = flex(endless('flex', 200));
    driver.submit(work);
    await steps(driver, 5);
    driver.submit(endless('a', 3));
    await steps(driver, 31);
    expect(tokensSoFar(driver, 'a')).toBe(0);
    await steps(driver, 3);
    expect(tokensSoFar(driver, 'a')).toBeGreaterThan(0);
    let sent = 0;
    while (ends(driver, 'flex') === null && sent < 100) {
      if (driver.engine.status.waiting < 3) driver.submit(endless(`${sent++}`, 5));
      await driver.step();
    }
    expect(sent).toBeGreaterThan(5);
    expectWhole(driver, work, 1);
  });

  it('alternates with interactive ones in a single slot', async () => {
    const driver = start(1);
    for (let index = 0; index < 20; index++) {
      driver.submit(endless(`${index}`, 5));
      driver.submit(flex(endless(`flex ${index}`, 5)));
    }
    while (ends(driver, 'flex 9') === null) await driver.step();
    expect(ends(driver, '8')).not.toBeNull();
    expect(ends(driver, '12')).toBeNull();
  });

  it('pauses while an interactive prompt is in prefill, and has one of 32 parts of the time in the long run', async () => {
    const driver = startTimed(4);
    driver.submit(flex(endless('flex', 400)));
    await steps(driver, 3);
    driver.submit(longPrompt('short', 20 * CHUNK, 'other'));
    const before = tokensSoFar(driver, 'flex');
    await steps(driver, 20);
    expect(tokensSoFar(driver, 'flex') - before).toBeLessThanOrEqual(1);
    expect(tokensSoFar(driver, 'short')).toBeGreaterThan(0);
    driver.submit(longPrompt('long', 100 * CHUNK, 'other'));
    await steps(driver, 100);
    expect(tokensSoFar(driver, 'flex') - before).toBeGreaterThanOrEqual(3);
    await driver.finish();
  });

  it('is suspended in prefill as well, and its prompt continues where it stopped', async () => {
    const driver = start(2);
    const work = ['one', 'two'].map((name) =>
      flex({
        ...longPrompt(name, 6 * CHUNK),
        echo: true,
        promptTopLogprobs: 2,
        cachePrompt: false,
        choices: 2,
      }),
    );
    for (const one of work) driver.submit(one);
    await steps(driver, 4);
    for (const name of ['a', 'b']) driver.submit(endless(name, 3));
    await driver.finish();
    expect(driver.engine.status.suspensions).toBeGreaterThan(0);
    for (const one of work) expectWhole(driver, one, 2);
  });

  it('leaves nothing behind if its request is aborted or times out while it is suspended', async () => {
    const driver = start(3);
    for (let index = 0; index < 3; index++) {
      const deadline = index === 1 ? driver.now + 987_654_321 + 20 * STEP_MS : Number.MAX_SAFE_INTEGER;
      driver.submit({ ...flex(endless(`flex ${index}`, 400)), deadline });
    }
    await steps(driver, 6);
    for (const name of ['a', 'b']) driver.submit(endless(name, 200));
    await steps(driver, 3);
    expect(driver.engine.status.suspended).toBe(2);
    driver.engine.abort('flex 2');
    expect(driver.engine.violations()).toEqual([]);
    await steps(driver, 20);
    expect(driver.eventsOf('flex 1').at(-1)).toMatchObject({ type: 'error', code: 'upstream_timeout' });
    expect(driver.engine.status.suspended).toBe(0);
    await driver.finish();
  });

  it('runs on if there is no memory for its KV', async () => {
    const driver = start(2, CHUNK * 700);
    for (let index = 0; index < 2; index++) driver.submit(flex(endless(`flex ${index}`, 60)));
    await steps(driver, 40);
    driver.submit(endless('a', 5));
    await steps(driver, 4);
    expect(driver.engine.status).toMatchObject({ suspended: 0, suspensions: 0 });
    await driver.finish();
    expectWhole(driver, endless('a', 5), 2);
  });

  const broken = async (method: 'read' | 'write') => {
    const runner = new ScriptedRunner(shape(2));
    let calls = 0;
    const kvBytes: KvBytes = {
      ...runner.kvBytes,
      [method]: (...values: readonly unknown[]) => {
        const parts = values.at(-1);
        if (Array.isArray(parts) && parts.length === 0) return;
        calls++;
        throw new Error(`no ${method}`);
      },
    };
    Object.defineProperty(runner, 'kvBytes', { value: kvBytes });
    const driver = new Driver(runner, { prefixStoreBytes: ROOM });
    const work = [0, 1].map((index) => ({ ...flex(endless(`flex ${index}`, 60)), cachePrompt: false }));
    for (const one of work) driver.submit(one);
    await steps(driver, 6);
    driver.submit({ ...endless('a', 5), cachePrompt: false });
    await driver.finish();
    expect(calls).toBeGreaterThan(0);
    expect(driver.reports).toContainEqual({
      type: 'fault',
      message: `a sequence could not be moved: no ${method}`,
    });
    expectWhole(driver, endless('a', 5), 2);
    expectWhole(driver, work[0]!, 2);
    return { driver, second: work[1]! };
  };

  it('runs on if its KV cannot be read', async () => {
    const { driver, second } = await broken('read');
    expectWhole(driver, second, 2);
  });

  it('fails, and no other, if its KV cannot be written back', async () => {
    const { driver } = await broken('write');
    expect(driver.eventsOf('flex 1').at(-1)).toMatchObject({ type: 'error', retryable: true });
  });
});

describe('a tenant above its share of the slots', () => {
  it('gives up its longest-running sequences within one step, and gets the slots back', async () => {
    const driver = start(8);
    const attack = { ...endless('attack', 60, 'greedy'), choices: 16 };
    driver.submit(attack);
    await steps(driver, 10);
    for (let index = 0; index < 6; index++) driver.submit(endless(`quiet ${index}`, 12, 'quiet'));
    await driver.step();
    expect(driver.engine.status).toMatchObject({ running: 8, suspended: 4 });
    await steps(driver, 40);
    for (let index = 0; index < 6; index++) expect(ends(driver, `quiet ${index}`)).not.toBeNull();
    expect(driver.engine.status.suspended).toBe(0);
    await driver.finish();
    expectWhole(driver, attack, 8);
  });

  /** Eight sequences of a long prompt in all slots, and four short prompts of another tenant that wait. */
  async function attacked(options: ScriptedOptions = {}) {
    const runner = new ScriptedRunner(shape(8), options);
    const moved = { positions: 0 };
    const { read } = runner.kvBytes;
    runner.kvBytes.read = (slot, start, end, bytes) => {
      moved.positions += end - start;
      read(slot, start, end, bytes);
    };
    const driver = new Driver(runner, { prefixStoreBytes: storeBytes(runner, 1000) });
    const long = { ...longPrompt('attack', 20 * CHUNK, 'greedy'), choices: 8, cachePrompt: false };
    const attack = { ...long, prompts: long.prompts.map((prompt) => ({ ...prompt, maxTokens: 60 })) };
    driver.submit(attack);
    while (tokensSoFar(driver, 'attack') < 10 * 8) await driver.step();
    for (let index = 0; index < 4; index++)
      driver.submit({ ...endless(`quiet ${index}`, 12, 'quiet'), cachePrompt: false });
    return { driver, attack, moved };
  }

  it('has the KV of at most 32 chunks and two more sequences moved per step, and none of its tokens changed', async () => {
    const { driver, attack, moved } = await attacked();
    const movedBy: number[] = [];
    for (const suspended of [2, 4, 4]) {
      moved.positions = 0;
      await driver.step();
      movedBy.push(moved.positions);
      expect(driver.engine.status.suspended).toBe(suspended);
    }
    expect(Math.max(...movedBy)).toBeLessThan(32 * CHUNK + 2 * (20 * CHUNK + 60));
    await driver.finish();
    expectWhole(driver, attack, 8);
  });

  it('has no more moved in a step of which a run fails', async () => {
    let fails = false;
    const { driver } = await attacked({
      beforeRun: (kind) => {
        if (fails && kind === 'prefill') throw new Error('broken');
      },
    });
    fails = true;
    await driver.step();
    expect(driver.engine.status.suspended).toBe(2);
  });
});
