import { setImmediate } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { maxEventsPerSecond } from '../../../origin/engine/runs/engine-options.ts';
import { Driver, STEP_MS } from './support/engine-driver.ts';
import { CHUNK, endless, longPrompt, shape, tokensSoFar } from './support/long-requests.ts';
import { grammarOf } from './support/positional-grammar.ts';
import { ScriptedRunner } from './support/scripted-runner.ts';
import { NEUTRAL } from './support/submissions.ts';
import { transcribe } from './support/transcript.ts';
import { VOCABULARY } from './support/vocabulary.ts';

const sum = (numbers: readonly number[]) => numbers.reduce((total, number) => total + number, 0);

describe('running streams', () => {
  it('get a token in every step while a long prompt is in prefill', async () => {
    const driver = new Driver(new ScriptedRunner(shape(2)));
    driver.submit(endless('stream', 200));
    await driver.step();
    driver.submit(longPrompt('long', 40 * CHUNK));
    for (let step = 0; step < 40; step++) {
      const before = tokensSoFar(driver, 'stream');
      await driver.step();
      expect(tokensSoFar(driver, 'stream')).toBe(before + 1);
    }
    await driver.step();
    expect(tokensSoFar(driver, 'long')).toBeGreaterThan(0);
  });

  it('get a token in every step while a long prompt is copied for its choices, 32 chunks at a time', async () => {
    const runner = new ScriptedRunner(shape(8));
    const copies: number[] = [];
    const copy = runner.copy.bind(runner);
    runner.copy = (from, to, end, start = 0) => {
      copies.push(end - start);
      copy(from, to, end, start);
    };
    const driver = new Driver(runner);
    driver.submit(endless('stream', 300));
    await driver.step();
    driver.submit({ ...longPrompt('long', 1500), choices: 3 });
    let most = 0;
    while (driver.eventsOf('long').at(-1)?.type !== 'done') {
      const before = tokensSoFar(driver, 'stream');
      const start = copies.length;
      await driver.step();
      expect(tokensSoFar(driver, 'stream')).toBe(before + 1);
      most = Math.max(most, sum(copies.slice(start)));
    }
    expect(sum(copies)).toBe(2 * 1500);
    expect(most).toBe(32 * CHUNK);
  });

  it('are decoded in as many rows as there are streams, once compaction has closed the holes', async () => {
    const runner = new ScriptedRunner(shape(8));
    const driver = new Driver(runner);
    for (let serial = 0; serial < 8; serial++) {
      driver.submit(endless(`${serial}`, serial % 4 === 3 ? 200 : 20));
    }
    await driver.finish();
    expect(runner.decodes.some(({ rows }) => rows === 8)).toBe(true);
    expect(runner.decodes.at(-50)).toMatchObject({ rows: 2 });
  });

  it('send the first token at once, then one event per interval, all in the same step, without losing a token', async () => {
    const driver = new Driver(new ScriptedRunner(shape(4)));
    const ids = ['0', '1', '2', '3'];
    const sentAt = new Map<string, number[]>(ids.map((id) => [id, []]));
    for (const id of ids) driver.submit({ ...endless(id, 200), eventIntervalMs: 50 });
    while (!driver.engine.idle) {
      const { now } = driver;
      const before = ids.map((id) => tokensSoFar(driver, id));
      await driver.step();
      for (const [at, id] of ids.entries()) {
        if (tokensSoFar(driver, id) > before[at]!) sentAt.get(id)?.push(now);
      }
    }
    const merged = ids.map((id) => sentAt.get(id)!.slice(1, -1));
    for (const [at, id] of ids.entries()) {
      const [first = 0] = sentAt.get(id)!;
      expect(first).toBeLessThanOrEqual(1_000_000 + (at + 1) * STEP_MS);
      for (const time of merged[at]!) expect(time % 50).toBeLessThan(STEP_MS);
      expect(transcribe(driver.eventsOf(id), 1).choices.get(0)?.ids).toHaveLength(200);
    }
    const last = merged[0]!.at(-1)!;
    expect(last).toBeGreaterThan(1_000_000 + 150 * STEP_MS);
    for (const times of merged) expect(times).toContain(last);
  });

  it('send the first text at once, also if its first tokens are parts of a character', async () => {
    const [first, second, third, last] = [12, 13, 14, 15].map((id) => [id]);
    const places = [first!, second!, third!, last!, ...Array.from({ length: 60 }, () => [0])];
    const compile = () => Promise.resolve(grammarOf(places, VOCABULARY));
    const driver = new Driver(new ScriptedRunner(shape(4)), { compile });
    driver.submit({ ...endless('emoji', 60), constraint: 'emoji', eventIntervalMs: 1000 });
    await setImmediate();
    for (let step = 0; step < 6; step++) await driver.step();
    const texts = driver.eventsOf('emoji').flatMap((event) => (event.type === 'token' ? event.text : []));
    expect(texts).toEqual(['', '😀']);
  });

  it.each([
    { streams: 1, interval: 50 },
    { streams: 2, interval: 80 },
    { streams: 4, interval: 100 },
  ])(
    'send every $interval ms if $streams streams share cores that can send 25 events per second',
    async ({ streams, interval }) => {
      const driver = new Driver(new ScriptedRunner(shape(4)), { maxEventsPerSecond: 25 });
      for (let id = 0; id < streams; id++) driver.submit({ ...endless(`${id}`, 200), eventIntervalMs: 50 });
      await driver.finish();
      for (let id = 0; id < streams; id++) {
        const events = driver.eventsOf(`${id}`).filter(({ type }) => type === 'token');
        expect(Math.abs(events.length - (200 * STEP_MS) / interval)).toBeLessThanOrEqual(2);
        expect(transcribe(driver.eventsOf(`${id}`), 1).choices.get(0)?.ids).toHaveLength(200);
      }
    },
  );

  it('send an event in every 20 ms if 128 of them share a card and 16 processors', async () => {
    const streams = Array.from({ length: 128 }, (_, id) => `${id}`);
    const driver = new Driver(new ScriptedRunner(shape(128)), {
      maxEventsPerSecond: maxEventsPerSecond(16, true),
    });
    for (const id of streams) driver.submit({ ...endless(id, 1000), eventIntervalMs: 20 });
    while (tokensSoFar(driver, '127') === 0) await driver.step();
    for (let interval = 0; interval < 10; interval++) {
      const before = streams.map((id) => tokensSoFar(driver, id));
      const end = driver.now + 20;
      // Without the 7 ms that the driver adds itself, a step takes 3.6 ms, as on an H100.
      for (; driver.now < end; driver.now += 3.6 - STEP_MS) await driver.step();
      for (const [at, id] of streams.entries()) expect(tokensSoFar(driver, id)).toBeGreaterThan(before[at]!);
    }
  });

  it('count every greedy choice of one sequence as a separate stream', async () => {
    const driver = new Driver(new ScriptedRunner(shape(4)), { maxEventsPerSecond: 25 });
    const sampling = { ...NEUTRAL, temperature: 0 };
    driver.submit({ ...endless('greedy', 200), choices: 4, sampling, eventIntervalMs: 50 });
    await driver.finish();
    const { choices } = transcribe(driver.eventsOf('greedy'), 4);
    const events = driver.eventsOf('greedy').filter(({ type }) => type === 'token');
    expect(choices.size).toBe(4);
    expect(Math.abs(events.length / 4 - (200 * STEP_MS) / 100)).toBeLessThanOrEqual(2);
  });
});
