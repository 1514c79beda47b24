import { readFileSync, statSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { HubClient } from '../../../../origin/hub/fetch/hub-client.ts';
import { forEachTest } from '../../../support/for-tests.ts';
import { FakeHub } from './fake-hub.ts';
import { FILES, NAME, PullFixture, WEIGHTS } from './pull-fixture.ts';

const fixture = forEachTest(() => PullFixture.start());

describe('interrupted downloads', () => {
  test('resumes after each of three lost connections where the file ends', async () => {
    fixture.offer();
    fixture.hub.faults.set(WEIGHTS, { cuts: [50_000, 0, 100_000] });
    await fixture.run();
    expect(readFileSync(fixture.weightsBlob())).toEqual(FILES[WEIGHTS]);
    const starts = fixture.hub.downloads(WEIGHTS).map(({ range }) => range);
    expect(starts).toEqual([undefined, 'bytes=50000-', 'bytes=50000-', 'bytes=150000-']);
    expect(fixture.delays).toEqual([375, 750, 375]);
  });

  test('starts again at byte 0 if the server ignores Range', async () => {
    fixture.offer();
    fixture.hub.supportsRange = false;
    fixture.hub.faults.set(WEIGHTS, { cuts: [50_000, 120_000] });
    await fixture.run();
    expect(readFileSync(fixture.weightsBlob())).toEqual(FILES[WEIGHTS]);
    expect(fixture.hub.downloads(WEIGHTS)).toHaveLength(3);
  });

  test('gives up if the server ignores Range and always fails at the same byte', async () => {
    fixture.offer();
    fixture.hub.supportsRange = false;
    fixture.hub.faults.set(WEIGHTS, { cuts: Array<number>(40).fill(50_000) });
    expect(await fixture.fault()).toMatch(/^failed after 4 attempts: connection to localhost:\d+ lost/);
    expect(fixture.hub.downloads(WEIGHTS)).toHaveLength(4);
  });

  test('retries after the statuses 503, 500 and 429, when Retry-After says', async () => {
    fixture.offer();
    fixture.hub.faults.set(WEIGHTS, { statuses: [503, 500, 429], headers: { 'retry-after': '7' } });
    await fixture.run();
    expect(readFileSync(fixture.weightsBlob())).toEqual(FILES[WEIGHTS]);
    expect(fixture.delays).toEqual([7000, 7000, 7000]);
    expect(fixture.notes).toHaveLength(3);
  });

  test('fails after 4 attempts without progress and keeps the partial file for the next pull', async () => {
    fixture.offer();
    fixture.hub.faults.set(WEIGHTS, { cuts: [70_000, 0, 0, 0, 0, 0, 0] });
    expect(await fixture.fault()).toMatch(/^failed after 4 attempts: connection to localhost:\d+ lost/);
    expect(statSync(`${fixture.weightsBlob()}.incomplete`).size).toBe(70_000);
    fixture.hub.faults.clear();
    fixture.hub.seen.length = 0;
    await fixture.run();
    expect(fixture.hub.downloads(WEIGHTS).map(({ range }) => range)).toEqual(['bytes=70000-']);
    expect(readFileSync(fixture.weightsBlob())).toEqual(FILES[WEIGHTS]);
  });

  test('treats a connection without data as lost', async () => {
    fixture.offer();
    fixture.hub.faults.set(WEIGHTS, { silent: true });
    expect(await fixture.fault({}, { stallMs: 80 })).toMatch(/no data for too long$/);
  });

  test('names a hub that cannot be reached', async () => {
    const settings = { endpoint: fixture.hub.endpoint, token: null, cache: fixture.cache };
    await fixture.hub.stop();
    const retries = {
      maxAttempts: 2,
      sleep: async () => undefined,
      random: () => 0,
      onRetry: () => undefined,
    };
    const client = new HubClient({ settings, fetch, retries, stallMs: 1000 });
    await expect(client.listing(NAME, 'main')).rejects.toThrow(/127\.0\.0\.1:\d+ lost: ECONNREFUSED/);
    fixture.hub = await FakeHub.start();
  });
});
