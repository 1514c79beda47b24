import { describe, expect, it } from 'vitest';
import { Driver, STEP_MS, UNIX_AHEAD } from './support/engine-driver.ts';
import { endless, ends, longPrompt, shape, tokensSoFar } from './support/long-requests.ts';
import { ScriptedRunner } from './support/scripted-runner.ts';

describe('an abort', () => {
  it('frees the slot of a decoding request, and the waiting request decodes within two steps', async () => {
    const driver = new Driver(new ScriptedRunner(shape(1)));
    driver.submit(endless('first', 1000));
    driver.submit(endless('second', 5));
    for (let step = 0; step < 5; step++) await driver.step();
    const sent = driver.eventsOf('first').length;
    driver.engine.abort('first');
    await driver.step();
    await driver.step();
    expect(tokensSoFar(driver, 'second')).toBeGreaterThan(0);
    await driver.finish();
    expect(driver.eventsOf('first')).toHaveLength(sent);
    expect(ends(driver, 'second')).toEqual({ promptTokens: 2, completionTokens: 5 });
  });

  it.each([
    ['has tokens left', 1000],
    ['would have finished in that run', 3],
  ])('stops all events of a request that is decoding and %s', async (_, maxTokens) => {
    const driver = new Driver(new ScriptedRunner(shape(2), { asyncDecode: true }));
    driver.submit(endless('gone', maxTokens));
    driver.submit(endless('other', 20));
    while (tokensSoFar(driver, 'gone') < 2) await driver.step();
    const step = driver.step();
    driver.engine.abort('gone');
    await step;
    await driver.finish();
    expect(tokensSoFar(driver, 'gone')).toBe(2);
    expect(driver.eventsOf('gone').at(-1)?.type).toBe('token');
    expect(ends(driver, 'other')).toEqual({ promptTokens: 2, completionTokens: 20 });
  });

  it('stops a running prefill', async () => {
    const runner = new ScriptedRunner(shape(1), { turns: 1000 });
    const driver = new Driver(runner);
    driver.submit(longPrompt('long', 64));
    const step = driver.step();
    driver.engine.abort('long');
    await step;
    expect(driver.engine.idle).toBe(true);
    expect(runner.prefills).toHaveLength(1);
    driver.engine.settle();
    expect(driver.eventsOf('long')).toEqual([]);
  });

  it('hides the later error of an invalid grammar', async () => {
    const { promise, reject } = Promise.withResolvers<never>();
    const driver = new Driver(new ScriptedRunner(shape(1)), { compile: () => promise });
    driver.submit({ ...endless('gone', 5), constraint: '{}' });
    driver.engine.abort('gone');
    reject(new Error('no such rule'));
    await new Promise(setImmediate);
    driver.engine.settle();
    expect(driver.eventsOf('gone')).toEqual([]);
  });

  it('removes waiting requests from the queue, and ignores unknown ids', async () => {
    const driver = new Driver(new ScriptedRunner(shape(1)));
    driver.submit(endless('first', 10));
    driver.submit(endless('second', 10));
    driver.engine.abort('second');
    driver.engine.abort('unknown');
    expect(driver.engine.status.waiting).toBe(0);
    await driver.finish();
    expect(driver.eventsOf('second')).toEqual([]);
  });
});

describe('a deadline', () => {
  it('ends a waiting request with an error and zero usage', async () => {
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

  it('ends a running request with an error and its usage', async () => {
    const driver = new Driver(new ScriptedRunner(shape(2)));
    driver.submit({ ...endless('slow', 1000), deadline: driver.now + UNIX_AHEAD + 10 * STEP_MS });
    driver.submit(endless('other', 30));
    await driver.finish();
    const last = driver.eventsOf('slow').at(-1);
    expect(last).toMatchObject({ type: 'error', code: 'upstream_timeout', retryable: false });
    expect(last).toMatchObject({ usage: { promptTokens: 2, completionTokens: tokensSoFar(driver, 'slow') } });
    expect(ends(driver, 'other')).toEqual({ promptTokens: 2, completionTokens: 30 });
  });

  it('ends each request at its own deadline, also after others have expired', async () => {
    const driver = new Driver(new ScriptedRunner(shape(4)));
    const steps = [12, 4, 8];
    driver.submit(endless('other', 1000));
    for (const after of steps) {
      driver.submit({ ...endless(`${after}`, 1000), deadline: driver.now + UNIX_AHEAD + after * STEP_MS });
    }
    for (let step = 1; step <= 13; step++) {
      await driver.step();
      const ended = steps.filter((after) => driver.eventsOf(`${after}`).at(-1)?.type === 'error');
      expect(ended).toEqual(steps.filter((after) => after < step));
    }
  });
});
