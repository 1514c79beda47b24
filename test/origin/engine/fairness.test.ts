import { describe, expect, it } from 'vitest';
import { Driver } from './support/engine-driver.ts';
import { CHUNK, endless, longPrompt, shape, tokensSoFar } from './support/long-requests.ts';
import { ScriptedRunner } from './support/scripted-runner.ts';
import { NEUTRAL } from './support/submissions.ts';
import { EOS } from './support/vocabulary.ts';

const doneBy = (driver: Driver, tenant: string) =>
  [...driver.events].filter(([id, events]) => id.startsWith(tenant) && events.at(-1)?.type === 'done').length;

describe('fairness between tenants', () => {
  it('gives equal shares to two tenants, if one sends ten times as many requests', async () => {
    const driver = new Driver(new ScriptedRunner(shape(4)));
    for (let serial = 0; serial < 200; serial++) driver.submit(endless(`loud ${serial}`, 10, 'loud'));
    for (let serial = 0; serial < 20; serial++) driver.submit(endless(`quiet ${serial}`, 10, 'quiet'));
    const done = (tenant: string) => doneBy(driver, tenant);
    while (done('quiet') < 20) await driver.step();
    expect(done('loud')).toBeLessThanOrEqual(24);
    await driver.finish();
    expect(done('loud')).toBe(200);
  });

  it('alternates prefill chunks between tenants, so that a long prompt does not block the others', async () => {
    const driver = new Driver(new ScriptedRunner(shape(4)));
    driver.submit(longPrompt('long', 50 * CHUNK, 'a'));
    await driver.step();
    driver.submit(longPrompt('short', 2 * CHUNK, 'b'));
    let steps = 0;
    for (; tokensSoFar(driver, 'short') === 0; steps++) await driver.step();
    expect(steps).toBeLessThanOrEqual(4);
  });

  it('shares tokens, not requests', async () => {
    const driver = new Driver(new ScriptedRunner(shape(1)));
    for (let serial = 0; serial < 20; serial++) {
      driver.submit(endless(`long ${serial}`, 98, 'long'));
      driver.submit(endless(`short ${serial}`, 8, 'short'));
    }
    while (doneBy(driver, 'short') < 20) await driver.step();
    expect(doneBy(driver, 'long')).toBeLessThanOrEqual(3);
  });

  const sampling = { ...NEUTRAL, logitBias: [[EOS, 100] satisfies [number, number]] };
  const prompts = [{ tokens: Int32Array.from({ length: 200 }, (_, at) => at % 10), maxTokens: 3000 }];
  it.each([
    ['ends with its first token', { sampling, ignoreEos: false }, null],
    ['ends with its fourth token', { sampling, ignoreEos: false, minTokens: 3 }, null],
    ['is aborted while it streams', {}, 5],
    ['is aborted in prefill', { prompts }, 5],
  ])('charges only what a request has used, if it %s', async (_, fields, abortAfter) => {
    const driver = new Driver(new ScriptedRunner(shape(1)));
    // Keeps the slot busy, because a request that enters an empty queue is not charged.
    driver.submit(endless('before', 1, 'c'));
    driver.submit({ ...endless('first', 3000, 'a'), ...fields });
    for (let serial = 0; serial < 10; serial++) driver.submit(endless(`a ${serial}`, 10, 'a'));
    for (let serial = 0; serial < 10; serial++) driver.submit(endless(`b ${serial}`, 10, 'b'));
    for (let step = 0; step < (abortAfter ?? 0); step++) await driver.step();
    if (abortAfter !== null) driver.engine.abort('first');
    while (doneBy(driver, 'b') < 5) await driver.step();
    expect(doneBy(driver, 'a')).toBeGreaterThanOrEqual(3);
  });
});
