import { describe, expect, it } from 'vitest';
import { Throughput } from '../../../../origin/engine/scheduling/throughput.ts';
import { Driver, STEP_MS } from '../support/engine-driver.ts';
import { endless, shape } from '../support/long-requests.ts';
import { ScriptedRunner } from '../support/scripted-runner.ts';
import { transcribe } from '../support/transcript.ts';

describe('a full waiting queue', () => {
  it('refuses what does not fit, with a retry-after computed from recent finishes', async () => {
    const driver = new Driver(new ScriptedRunner(shape(2)), { maxWaiting: 2 });
    for (const name of ['a', 'b', 'c', 'd']) driver.submit(endless(name, 10));
    expect(driver.refused.size).toBe(0);
    driver.submit(endless('e', 10));
    expect(driver.refused.get('e')).toBe(1000);
    await driver.finish();
    for (const name of ['a', 'b', 'c', 'd']) driver.submit(endless(`${name}2`, 10));
    driver.submit(endless('e2', 10));
    // Four sequences of ten tokens take about 22 steps in two slots.
    expect(driver.refused.get('e2')).toBeGreaterThan(STEP_MS * 3);
    expect(driver.refused.get('e2')).toBeLessThan(STEP_MS * 30);
    await driver.finish();
    expect(driver.eventsOf('e2')).toEqual([]);
  });

  it.each([
    ['no request', 0],
    ['one stream only', 1000],
  ])('gives the same retry-after after an hour with %s', async (_, tokens) => {
    const driver = new Driver(new ScriptedRunner(shape(3)), { maxWaiting: 2 });
    if (tokens > 0) driver.submit(endless('all the time', tokens));
    for (let round = 0; round < 3; round++) {
      driver.now += 3_600_000;
      for (const name of ['a', 'b', 'c', 'd', 'e', 'f']) driver.submit(endless(`${name}${round}`, 10));
      if (round === 2) expect(driver.refused.get('f2')).toBeLessThan(STEP_MS * 30);
      else for (let step = 0; step < 60; step++) await driver.step();
    }
  });

  it('gives a longer retry-after the longer nothing finishes', async () => {
    const driver = new Driver(new ScriptedRunner(shape(2)), { maxWaiting: 2 });
    for (const name of ['a', 'b', 'c', 'd']) driver.submit(endless(name, 10));
    await driver.finish();
    for (const name of ['e', 'f', 'g', 'h']) driver.submit(endless(name, 1000));
    driver.submit(endless('early', 10));
    driver.now += 10_000;
    driver.submit(endless('later', 10));
    expect(driver.refused.get('later')).toBeGreaterThan(2 * driver.refused.get('early')!);
  });

  it('gives no shorter retry-after if the requests before are still being prepared', async () => {
    const waits = [false, true].map(async (prepared) => {
      const compile = () => new Promise<never>(() => undefined);
      const driver = new Driver(new ScriptedRunner(shape(2)), { maxWaiting: 2, compile });
      for (const name of ['a', 'b', 'c', 'd']) driver.submit(endless(name, 10));
      await driver.finish();
      for (const name of ['e', 'f', 'g', 'h']) {
        driver.submit({ ...endless(name, 10), constraint: prepared ? '{}' : null });
      }
      driver.submit({ ...endless('refused', 10), choices: 50 });
      return driver.refused.get('refused') ?? 0;
    });
    const [ready, preparing] = await Promise.all(waits);
    expect(preparing).toBeGreaterThanOrEqual(ready!);
  });

  it('counts requests whose grammar is being compiled', async () => {
    const compile = () => new Promise<never>(() => undefined);
    const driver = new Driver(new ScriptedRunner(shape(2)), { maxWaiting: 2, compile });
    for (const name of ['a', 'b', 'c', 'd', 'e']) driver.submit({ ...endless(name, 10), constraint: '{}' });
    driver.submit(endless('f', 10));
    expect([...driver.refused.keys()]).toEqual(['e', 'f']);
    driver.engine.abort('a');
    driver.submit(endless('g', 10));
    expect([...driver.refused.keys()]).toEqual(['e', 'f']);
  });

  it('keeps room for other tenants if all requests of one are being prepared', () => {
    const compile = () => new Promise<never>(() => undefined);
    const driver = new Driver(new ScriptedRunner(shape(2)), { maxWaiting: 8, compile });
    for (let serial = 0; serial < 12; serial++) {
      driver.submit({ ...endless(`${serial}`, 10), constraint: '{}' });
    }
    // Two slots and the whole queue.
    expect([...driver.refused.keys()]).toEqual(['10', '11']);
    driver.submit({ ...endless('other', 10, 'other'), constraint: '{}' });
    expect(driver.refused.has('other')).toBe(false);
  });

  it('runs a request with more choices than slots', async () => {
    const driver = new Driver(new ScriptedRunner(shape(2)), { maxWaiting: 2 });
    driver.submit({ ...endless('many', 6), choices: 9 });
    expect(driver.refused.size).toBe(0);
    await driver.finish();
    const { choices, end } = transcribe(driver.eventsOf('many'), 9);
    expect(choices.size).toBe(9);
    expect(end).toEqual({ promptTokens: 2, completionTokens: 54 });
  });
});

describe('the estimated wait', () => {
  it('is the time between two recent finishes', () => {
    const throughput = new Throughput(8);
    for (let at = 0; at <= 1000; at += 100) throughput.recordFinish(at);
    // The last eight finishes took 700 ms, from 300 ms to 1,000 ms.
    expect(throughput.waitForNext(1000)).toBe(100);
    expect(throughput.waitForNext(1800)).toBe(188);
  });

  it('grows while nothing finishes, and stays between 0.1 s and 60 s', () => {
    const throughput = new Throughput(8);
    throughput.recordFinish(0);
    expect(throughput.waitForNext(5_000)).toBe(5_000);
    expect(throughput.waitForNext(500_000)).toBe(60_000);
    expect(throughput.waitForNext(1)).toBe(100);
  });

  it('excludes the time in which slots were free', () => {
    const throughput = new Throughput(8);
    for (let at = 0; at <= 4000; at += 400) throughput.recordFinish(at);
    throughput.resume(3_604_000);
    expect(throughput.waitForNext(3_604_000)).toBe(350);
    for (let at = 1; at <= 3; at++) throughput.recordFinish(3_604_000 + 400 * at);
    expect(throughput.waitForNext(3_605_200)).toBe(350);
  });

  it('is one second before the first finish', () => {
    expect(new Throughput(8).waitForNext(0)).toBe(1_000);
  });
});
