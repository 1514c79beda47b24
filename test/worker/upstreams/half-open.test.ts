import { expect, test } from 'vitest';
import { forAllTests } from '../../support/for-tests.ts';
import { ADMIN_KEY_SHA256, admin, tenantWithKey } from '../admin/admin-client.ts';
import { eventually } from '../support/eventually.ts';
import { SECRET, startFakeOrigin } from '../support/fake-origin.ts';
import { acceptedFor, tokenEvent } from '../support/scripts.ts';
import { payloadsOf } from '../support/sse.ts';
import { startWorker } from '../support/worker.ts';

const origin = forAllTests(startFakeOrigin);
const worker = forAllTests(() => {
  const upstream = { kind: 'origin', name: 'only', url: origin.url, timeouts: { idleMs: 300 } };
  return startWorker(origin, {
    ADMIN_KEY_SHA256,
    UPSTREAMS: JSON.stringify([upstream]),
    ORIGIN_SECRET: SECRET,
    REQUEST_TIMEOUT_MS: '500',
    RESERVATION_TTL_MS: '600000',
  });
});

test('a stream without events and heartbeats ends with an error, even if the origin says that it has ended', async () => {
  const { key } = await tenantWithKey(worker, 'half-open');
  origin.script = async (request, wire) => {
    wire.send(...acceptedFor(request), tokenEvent(1));
    const usage = { promptTokens: 2, cachedTokens: 0, completionTokens: 1 };
    origin.accounts.set(request.account!, { usage, finishReasons: [], ended: true });
    await wire.closed;
  };
  const body = { model: 'org/tiny', prompt: 'Hi', max_tokens: 4, stream: true };
  const answer = await worker.post(body, { headers: { authorization: `Bearer ${key}` } });
  expect(payloadsOf(await answer.text())).toMatchObject([
    { choices: [{ text: ' t1' }] },
    { error: { code: 'upstream_timeout' } },
  ]);
  const { body: usage } = await eventually(
    () => admin(worker, 'GET', '/usage?tenant=half-open'),
    ({ body: { total } }) => total.requests === 1,
  );
  expect(usage.total).toMatchObject({ failed: 1, completed: 0, prompt_tokens: 2, completion_tokens: 1 });
});
