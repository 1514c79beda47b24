import { expect, test } from 'vitest';
import { completion } from '../admin/admin-client.ts';
import { eventually } from '../support/eventually.ts';
import { KEY } from '../support/worker.ts';
import { promptFor, upstreamsForTests } from './upstreams-for-tests.ts';

const { origins, another } = upstreamsForTests();
const worker = another({}, { entry: 'test/worker/support/entries/standing-clock.ts' });

/** Any time; the Worker's clock is fixed. */
const START = Date.UTC(2100, 0, 31, 23, 30);
const PAUSE_MS = 1000;

const clockAt = (now: number) => worker.request('/health', { headers: { 'x-now': String(now) } });

async function oneAfterTheOther(count: number, prompt: string): Promise<void> {
  for (let index = 0; index < count; index += 1) {
    expect((await completion(worker, KEY, { prompt })).status).toBe(200);
  }
}

test('an origin that fails five times in a row gets no request for a second; then one probe decides', async () => {
  const [broken] = origins;
  await clockAt(START);
  const prompt = await promptFor(broken, worker);
  broken.reset();
  broken.script = (_, wire) => wire.refuse(500, {});
  await oneAfterTheOther(8, prompt);
  await clockAt(START + PAUSE_MS - 1);
  await oneAfterTheOther(2, prompt);
  expect(broken.requests).toHaveLength(5);
  await clockAt(START + PAUSE_MS);
  const probed = Promise.withResolvers<void>();
  broken.reset();
  const usual = broken.script;
  broken.script = async (request, wire) => {
    await probed.promise;
    return usual(request, wire);
  };
  const first = completion(worker, KEY, { prompt });
  await eventually(
    async () => broken.requests.length,
    (count) => count === 1,
  );
  await oneAfterTheOther(3, prompt);
  expect(broken.requests).toHaveLength(1);
  probed.resolve();
  expect((await first).status).toBe(200);
  await oneAfterTheOther(2, prompt);
  expect(broken.requests).toHaveLength(3);
});
