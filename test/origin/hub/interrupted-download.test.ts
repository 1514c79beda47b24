import { readFileSync, statSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { HubClient } from '../../../origin/hub/hub-client.ts';
import { forEachTest } from '../../support/for-tests.ts';
import { FakeHub } from './fake-hub.ts';
import { FILES, NAME, PullStage, WEIGHTS } from './pull-fixture.ts';

const stage = forEachTest(() => PullStage.start());

describe('bad lines', () => {
  test('three cuts during one file cost nothing that had arrived', async () => {
    stage.offer();
    stage.hub.faults.set(WEIGHTS, { cuts: [50_000, 0, 100_000] });
    await stage.run();
    expect(readFileSync(stage.weightsBlob())).toEqual(FILES[WEIGHTS]);
    const starts = stage.hub.transfers(WEIGHTS).map(({ range }) => range);
    expect(starts).toEqual([undefined, 'bytes=50000-', 'bytes=50000-', 'bytes=150000-']);
    expect(stage.pauses).toEqual([375, 750, 375]);
  });

  test('a server that ignores Range sends all of it, and the file is right', async () => {
    stage.offer();
    stage.hub.ranges = false;
    stage.hub.faults.set(WEIGHTS, { cuts: [50_000, 120_000] });
    await stage.run();
    expect(readFileSync(stage.weightsBlob())).toEqual(FILES[WEIGHTS]);
    expect(stage.hub.transfers(WEIGHTS)).toHaveLength(3);
  });

  test('a server that ignores Range and always cuts at the same byte is given up, not asked for ever', async () => {
    stage.offer();
    stage.hub.ranges = false;
    stage.hub.faults.set(WEIGHTS, { cuts: Array<number>(40).fill(50_000) });
    expect(await stage.fault()).toMatch(/^given up after 4 attempts: connection to localhost:\d+ lost/);
    expect(stage.hub.transfers(WEIGHTS)).toHaveLength(4);
  });

  test('a busy server is asked again after the time it names', async () => {
    stage.offer();
    stage.hub.faults.set(WEIGHTS, { statuses: [503, 500, 429] });
    await stage.run();
    expect(readFileSync(stage.weightsBlob())).toEqual(FILES[WEIGHTS]);
    expect(stage.notes).toHaveLength(3);
  });

  test('attempts that bring nothing end in one line; what had arrived stays for the next pull', async () => {
    stage.offer();
    stage.hub.faults.set(WEIGHTS, { cuts: [70_000, 0, 0, 0, 0, 0, 0] });
    expect(await stage.fault()).toMatch(/^given up after 4 attempts: connection to localhost:\d+ lost/);
    expect(statSync(`${stage.weightsBlob()}.incomplete`).size).toBe(70_000);
    stage.hub.faults.clear();
    stage.hub.seen.length = 0;
    await stage.run();
    expect(stage.hub.transfers(WEIGHTS).map(({ range }) => range)).toEqual(['bytes=70000-']);
    expect(readFileSync(stage.weightsBlob())).toEqual(FILES[WEIGHTS]);
  });

  test('a connection that falls silent counts as lost', async () => {
    stage.offer();
    stage.hub.faults.set(WEIGHTS, { silent: true });
    expect(await stage.fault({}, { stallMs: 80 })).toMatch(/nothing came for too long/);
  });

  test('a hub that cannot be reached is named', async () => {
    const settings = { endpoint: stage.hub.endpoint, token: null, cache: stage.cache };
    await stage.hub.stop();
    const patience = { attempts: 2, sleep: async () => undefined, random: () => 0, onRetry: () => undefined };
    const client = new HubClient({ settings, fetch, patience, stallMs: 1000 });
    await expect(client.listing(NAME, 'main')).rejects.toThrow(/127\.0\.0\.1:\d+ lost: ECONNREFUSED/);
    stage.hub = await FakeHub.start();
  });
});
