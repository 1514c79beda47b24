import { describe, expect, it } from 'vitest';
import { Driver, STEP_MS, UNIX_AHEAD } from './support/engine-driver.ts';
import { endless, ends, shape, tokensSoFar } from './support/long-requests.ts';
import { ScriptedRunner } from './support/scripted-runner.ts';

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
