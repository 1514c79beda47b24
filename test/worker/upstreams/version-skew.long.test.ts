import { beforeEach, expect, test } from 'vitest';
import { CAPABILITIES } from '../../../shared/capabilities.ts';
import { ndjsonLine } from '../../../shared/framing.ts';
import { completion } from '../admin/admin-client.ts';
import { eventually } from '../support/eventually.ts';
import { MODEL, type Script } from '../support/fake-origin.ts';
import { stepsFor } from '../support/scripts.ts';
import { KEY } from '../support/worker.ts';
import { WorkerdLog } from '../support/workerd-log.ts';
import { promptFor, upstreamsForTests } from './upstreams-for-tests.ts';

/** Tests a Worker before origins of other versions. */

const { origins, another } = upstreamsForTests();
const log = new WorkerdLog(/"event":"protocol_mismatch"/);
const worker = another({}, { log, entry: 'test/worker/support/entries/standing-clock.ts' });

/** The Worker's clock is fixed, so that an open breaker stays open; each test is a day later. */
let day = 0;
beforeEach(async () => {
  day += 1;
  await worker.request('/health', { headers: { 'x-now': String(Date.UTC(2100, 0, day)) } });
});

const refusing =
  (status: number, code: string, message: string): Script =>
  (_, wire) =>
    wire.refuse(status, { error: { message, type: 'invalid_request_error', param: null, code } });

test.each<[string, Script]>([
  ['has another protocol', refusing(502, 'protocol_mismatch', "Invalid 'version': expected 3.")],
  ['lacks the route', refusing(404, 'unknown_url', 'Invalid URL (POST /generate)')],
])(
  'an origin that %s fails as an upstream: failover, then the breaker, and a log line',
  async (_, script) => {
    const prompt = await promptFor(origins[0], worker);
    const before = log.lines.length;
    origins[0].script = script;
    origins[0].requests.length = 0;
    for (let count = 0; count < 8; count += 1) {
      expect((await completion(worker, KEY, { prompt })).status).toBe(200);
    }
    expect(origins[0].requests).toHaveLength(5);
    await eventually(
      async () => log.lines.slice(before),
      (lines) => lines.length === 5 && lines.every((line) => line.includes('"upstream":"first"')),
    );
    origins[1].script = script;
    const { status, body } = await completion(worker, KEY, { prompt });
    expect([status, body.error.code, body.error.param]).toEqual([502, 'upstream_error', null]);
  },
);

test('a request goes to an origin that supports its fields', async () => {
  const prompt = await promptFor(origins[0], worker);
  origins[0].capabilities = CAPABILITIES.filter((name) => name !== 'sampling.topNSigma');
  await worker.request('/v1/models');
  for (const origin of origins) origin.requests.length = 0;
  expect((await completion(worker, KEY, { prompt })).status).toBe(200);
  expect(origins.map(({ requests }) => requests.length)).toEqual([1, 0]);
  expect((await completion(worker, KEY, { prompt, top_n_sigma: 1 })).status).toBe(200);
  expect(origins.map(({ requests }) => requests.length)).toEqual([1, 1]);
  origins[1].capabilities = origins[0].capabilities;
  const { status, body } = await completion(worker, KEY, { prompt, top_n_sigma: 1 });
  expect([status, body.error.code]).toEqual([502, 'upstream_error']);
});

test('an origin that does not know service_tier gets flex requests', async () => {
  const prompt = await promptFor(origins[0], worker);
  origins[0].capabilities = CAPABILITIES.filter((name) => name !== 'flex');
  await worker.request('/v1/models');
  for (const origin of origins) origin.requests.length = 0;
  expect((await completion(worker, KEY, { prompt, service_tier: 'flex' })).status).toBe(200);
  expect(origins[0].requests).toMatchObject([{ flex: true }]);
});

test('fields, events and states of a newer origin are ignored', async () => {
  const script: Script = async (request, wire) => {
    for (const event of stepsFor(request).flat()) {
      await wire.raw(ndjsonLine({ type: 'progress', part: 0.5 }) + ndjsonLine({ ...event, mood: 'new' }));
    }
    wire.end();
  };
  const model = { ...MODEL, mood: 'new', defaults: { topZ: 4 } as object };
  for (const origin of origins) {
    origin.script = script;
    origin.models = [model, { ...MODEL, id: 'asleep', state: 'hibernating' as 'unloaded' }];
    origin.capabilities = [...CAPABILITIES, 'mood'];
  }
  const { status, body } = await completion(worker, KEY);
  expect([status, body.usage.completion_tokens]).toEqual([200, 4]);
  const asleep = await worker.request('/v1/models/asleep');
  expect(await asleep.json()).toMatchObject({ error: { code: 'model_unavailable' } });
});
