import { describe, expect, it } from 'vitest';
import { BOS, VOCABULARY } from './support/alphabet.ts';
import { Driver, STEP_MS, UNIX_AHEAD } from './support/driver.ts';
import { ScriptedRunner } from './support/scripted-runner.ts';
import { submission } from './support/submissions.ts';
import { transcribe } from './support/transcript.ts';

const CHUNK = 8;
const shape = (slots: number) => ({
  slots,
  contextLength: 4096,
  prefillChunk: CHUNK,
  vocabularySize: VOCABULARY,
  leastRows: 1,
});

/** Runs until its maximum, whatever is sampled. */
const endless = (requestId: string, maxTokens: number, tenantId = 'tenant') =>
  submission({
    requestId,
    tenantId,
    prompts: [{ tokens: Int32Array.of(BOS, 1), maxTokens }],
    ignoreEos: true,
  });

const longPrompt = (requestId: string, length: number, tenantId = 'tenant') =>
  submission({
    requestId,
    tenantId,
    cacheKey: requestId,
    prompts: [{ tokens: Int32Array.from({ length }, (_, at) => at % 10), maxTokens: 4 }],
    ignoreEos: true,
  });

const ends = (driver: Driver, requestId: string) => transcribe(driver.eventsOf(requestId), 1).end;
const tokensSoFar = (driver: Driver, requestId: string) =>
  driver.eventsOf(requestId).filter(({ type }) => type === 'token').length;

describe('H.8: an abort', () => {
  it('frees the slot of a decoding request within two steps, for the one that waits', async () => {
    const driver = new Driver(new ScriptedRunner(shape(1)));
    driver.submit(endless('first', 1000));
    driver.submit(endless('second', 5));
    for (let step = 0; step < 5; step++) await driver.step();
    const heard = driver.eventsOf('first').length;
    driver.engine.abort('first');
    await driver.step();
    await driver.step();
    expect(tokensSoFar(driver, 'second')).toBeGreaterThan(0);
    await driver.finish();
    expect(driver.eventsOf('first')).toHaveLength(heard);
    expect(ends(driver, 'second')).toEqual({ promptTokens: 2, completionTokens: 5 });
  });

  it('stops a prefill while it runs', async () => {
    const runner = new ScriptedRunner(shape(1), { prefillTurns: 1000 });
    const driver = new Driver(runner);
    driver.submit(longPrompt('long', 64));
    const step = driver.step();
    driver.engine.abort('long');
    await step;
    expect(driver.engine.idle).toBe(true);
    expect(runner.prefills).toHaveLength(1);
    driver.engine.settle();
  });

  it('takes waiting requests out of the queue, and leaves unknown ones alone', async () => {
    const driver = new Driver(new ScriptedRunner(shape(1)));
    driver.submit(endless('first', 10));
    driver.submit(endless('second', 10));
    driver.engine.abort('second');
    driver.engine.abort('nobody');
    expect(driver.engine.status.waiting).toBe(0);
    await driver.finish();
    expect(driver.eventsOf('second')).toEqual([]);
  });
});

describe('a deadline', () => {
  it('ends a waiting request with an error and what it has used: nothing', async () => {
    const driver = new Driver(new ScriptedRunner(shape(1)));
    driver.submit(endless('first', 100));
    driver.submit({ ...endless('late', 5), deadline: driver.now + UNIX_AHEAD + 3 * STEP_MS });
    await driver.finish();
    expect(driver.eventsOf('late')).toEqual([
      {
        type: 'error',
        code: 'upstream_timeout',
        message: expect.any(String),
        param: null,
        retryable: false,
        usage: { promptTokens: 0, cachedTokens: 0, completionTokens: 0 },
      },
    ]);
    expect(ends(driver, 'first')).toEqual({ promptTokens: 2, completionTokens: 100 });
  });

  it('ends a running request with what it has used', async () => {
    const driver = new Driver(new ScriptedRunner(shape(2)));
    driver.submit({ ...endless('slow', 1000), deadline: driver.now + UNIX_AHEAD + 10 * STEP_MS });
    driver.submit(endless('other', 30));
    await driver.finish();
    const last = driver.eventsOf('slow').at(-1);
    expect(last).toMatchObject({ type: 'error', code: 'upstream_timeout', retryable: false });
    expect(last).toMatchObject({ usage: { promptTokens: 2, completionTokens: tokensSoFar(driver, 'slow') } });
    expect(ends(driver, 'other')).toEqual({ promptTokens: 2, completionTokens: 30 });
  });
});

describe('a full queue', () => {
  it('refuses what does not fit, with a wait that follows from what has lately finished', async () => {
    const driver = new Driver(new ScriptedRunner(shape(2)), { maxWaiting: 2 });
    for (const name of ['a', 'b', 'c', 'd']) driver.submit(endless(name, 10));
    expect(driver.refused.size).toBe(0);
    driver.submit(endless('e', 10));
    expect(driver.refused.get('e')).toBe(1000);
    await driver.finish();
    for (const name of ['a', 'b', 'c', 'd']) driver.submit(endless(`${name}2`, 10));
    driver.submit(endless('e2', 10));
    // Four sequences of ten tokens in two slots: one every ten steps or so.
    expect(driver.refused.get('e2')).toBeGreaterThan(STEP_MS * 3);
    expect(driver.refused.get('e2')).toBeLessThan(STEP_MS * 30);
    await driver.finish();
    expect(driver.eventsOf('e2')).toEqual([]);
  });

  it('counts the requests whose grammar is still being compiled', async () => {
    const compile = () => new Promise<never>(() => undefined);
    const driver = new Driver(new ScriptedRunner(shape(2)), { maxWaiting: 2, compile });
    for (const name of ['a', 'b', 'c', 'd', 'e']) driver.submit({ ...endless(name, 10), constraint: '{}' });
    driver.submit(endless('f', 10));
    expect([...driver.refused.keys()]).toEqual(['e', 'f']);
    driver.engine.abort('a');
    driver.submit(endless('g', 10));
    expect([...driver.refused.keys()]).toEqual(['e', 'f']);
  });

  it('runs a request with more choices than slots in waves', async () => {
    const driver = new Driver(new ScriptedRunner(shape(2)), { maxWaiting: 2 });
    driver.submit({ ...endless('many', 6), choices: 9 });
    expect(driver.refused.size).toBe(0);
    await driver.finish();
    const { choices, end } = transcribe(driver.eventsOf('many'), 9);
    expect(choices.size).toBe(9);
    expect(end).toEqual({ promptTokens: 2, completionTokens: 54 });
  });
});

describe('shares', () => {
  it('are even between two tenants of which one sends ten times as much', async () => {
    const driver = new Driver(new ScriptedRunner(shape(4)));
    for (let serial = 0; serial < 200; serial++) driver.submit(endless(`loud ${serial}`, 10, 'loud'));
    for (let serial = 0; serial < 20; serial++) driver.submit(endless(`quiet ${serial}`, 10, 'quiet'));
    const done = (tenant: string) =>
      [...driver.events].filter(([id, events]) => id.startsWith(tenant) && events.at(-1)?.type === 'done')
        .length;
    while (done('quiet') < 20) await driver.step();
    expect(done('loud')).toBeLessThanOrEqual(24);
    await driver.finish();
    expect(done('loud')).toBe(200);
  });

  it('of prefill alternate between tenants, so that a long prompt does not hold up everybody', async () => {
    const driver = new Driver(new ScriptedRunner(shape(4)));
    driver.submit(longPrompt('long', 50 * CHUNK, 'a'));
    await driver.step();
    driver.submit(longPrompt('short', 2 * CHUNK, 'b'));
    let steps = 0;
    for (; tokensSoFar(driver, 'short') === 0; steps++) await driver.step();
    expect(steps).toBeLessThanOrEqual(4);
  });
});

describe('running streams', () => {
  it('get a token in every step while a long prompt is computed', async () => {
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

  it('are decoded on as few rows as there are streams, once the holes have been closed', async () => {
    const runner = new ScriptedRunner(shape(8));
    const driver = new Driver(runner);
    for (let serial = 0; serial < 8; serial++) {
      driver.submit(endless(`${serial}`, serial % 4 === 3 ? 200 : 20));
    }
    await driver.finish();
    expect(runner.decodes.some(({ rows }) => rows === 8)).toBe(true);
    expect(runner.decodes.at(-50)).toMatchObject({ rows: 2 });
  });

  it('speak of the first token at once, then once per interval and all in the same step, and lose no token', async () => {
    const driver = new Driver(new ScriptedRunner(shape(4)));
    const ids = ['0', '1', '2', '3'];
    const spoke = new Map<string, number[]>(ids.map((id) => [id, []]));
    for (const id of ids) driver.submit({ ...endless(id, 200), eventIntervalMs: 50 });
    while (!driver.engine.idle) {
      const { now } = driver;
      const before = ids.map((id) => tokensSoFar(driver, id));
      await driver.step();
      for (const [at, id] of ids.entries()) {
        if (tokensSoFar(driver, id) > before[at]!) spoke.get(id)?.push(now);
      }
    }
    const merged = ids.map((id) => spoke.get(id)!.slice(1, -1));
    for (const [at, id] of ids.entries()) {
      const [first = 0] = spoke.get(id)!;
      expect(first).toBeLessThanOrEqual(1_000_000 + (at + 1) * STEP_MS);
      for (const time of merged[at]!) expect(time % 50).toBeLessThan(STEP_MS);
      expect(transcribe(driver.eventsOf(id), 1).choices.get(0)?.ids).toHaveLength(200);
    }
    const last = merged[0]!.at(-1)!;
    expect(last).toBeGreaterThan(1_000_000 + 150 * STEP_MS);
    for (const times of merged) expect(times).toContain(last);
  });

  it.each([
    { streams: 1, interval: 50 },
    { streams: 2, interval: 80 },
    { streams: 4, interval: 100 },
  ])(
    'speak every $interval ms when $streams share cores that have time for 25 events a second',
    async ({ streams, interval }) => {
      const driver = new Driver(new ScriptedRunner(shape(4)), { cores: 25 / 200 });
      for (let id = 0; id < streams; id++) driver.submit({ ...endless(`${id}`, 200), eventIntervalMs: 50 });
      await driver.finish();
      for (let id = 0; id < streams; id++) {
        const events = driver.eventsOf(`${id}`).filter(({ type }) => type === 'token');
        expect(Math.abs(events.length - (200 * STEP_MS) / interval)).toBeLessThanOrEqual(2);
        expect(transcribe(driver.eventsOf(`${id}`), 1).choices.get(0)?.ids).toHaveLength(200);
      }
    },
  );
});

describe('the prefix cache', () => {
  const cached = (driver: Driver, requestId: string) => {
    const started = driver.eventsOf(requestId).find(({ type }) => type === 'started');
    return started?.type === 'started' ? started.cachedTokens : null;
  };
  const again = (requestId: string, fields: object = {}) => ({
    ...longPrompt(requestId, 3 * CHUNK + 2),
    cacheKey: 'key',
    ...fields,
  });

  it('is taken up to the last whole chunk, and computes only the rest', async () => {
    const runner = new ScriptedRunner(shape(2));
    const driver = new Driver(runner);
    driver.submit(again('first'));
    await driver.finish();
    runner.prefills.length = 0;
    driver.submit(again('second'));
    await driver.finish();
    expect(cached(driver, 'first')).toBe(0);
    expect(cached(driver, 'second')).toBe(3 * CHUNK);
    expect(runner.prefills).toEqual([2]);
    expect(driver.eventsOf('second').at(-1)).toMatchObject({ usage: { cachedTokens: 3 * CHUNK } });
  });

  it('serves a prompt that arrives together with its like', async () => {
    const driver = new Driver(new ScriptedRunner(shape(4)));
    driver.submit(again('first'));
    driver.submit(again('second'));
    await driver.finish();
    expect(cached(driver, 'second')).toBe(3 * CHUNK);
  });

  it('is shared by the prompts of one request', async () => {
    const driver = new Driver(new ScriptedRunner(shape(4)));
    const { prompts } = again('one');
    driver.submit(again('both', { prompts: [...prompts, ...prompts], cachePrompt: false }));
    await driver.finish();
    expect(driver.eventsOf('both').at(-1)).toMatchObject({ usage: { cachedTokens: 3 * CHUNK } });
  });

  it.each([
    ['of another key', { cacheKey: 'other' }],
    ['when the request opts out', { cachePrompt: false }],
    ['when prompt logprobs are wanted', { promptLogprobs: 0 }],
  ])('is not taken %s', async (_, fields) => {
    const driver = new Driver(new ScriptedRunner(shape(2)));
    driver.submit(again('first'));
    await driver.finish();
    driver.submit(again('second', fields));
    await driver.finish();
    expect(cached(driver, 'second')).toBe(0);
  });

  it('is not filled by a request that opts out', async () => {
    const driver = new Driver(new ScriptedRunner(shape(2)));
    driver.submit(again('first', { cachePrompt: false }));
    await driver.finish();
    driver.submit(again('second'));
    await driver.finish();
    expect(cached(driver, 'second')).toBe(0);
  });
});
