import { describe, expect, it } from 'vitest';
import { Driver } from './support/driver.ts';
import { endless, ends, longPrompt, shape, tokensSoFar } from './support/long-requests.ts';
import { ScriptedRunner } from './support/scripted-runner.ts';

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
