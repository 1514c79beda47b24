import { describe, expect, it } from 'vitest';
import { Driver } from './support/driver.ts';
import { CHUNK, endless, longPrompt, shape, tokensSoFar } from './support/long-requests.ts';
import { ScriptedRunner } from './support/scripted-runner.ts';

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
