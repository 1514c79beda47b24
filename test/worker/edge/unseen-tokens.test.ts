import { expect, test } from 'vitest';
import { acceptedFor } from '../support/scripts.ts';
import { workerForTests } from '../support/worker-for-tests.ts';
import { ADMIN_KEY_SHA256, admin, tenantWithKey } from './admin-client.ts';
import { eventually } from './eventually.ts';

const { worker, origin } = workerForTests({ ADMIN_KEY_SHA256, KEEP_ALIVE_MS: '200' });

test('what an origin generated for a client that has left, and nobody saw, is billed as the origin says', async () => {
  const { key } = await tenantWithKey(worker, 'unseen');
  origin.script = async (request, wire) => {
    const usage = { promptTokens: 3, cachedTokens: 0, completionTokens: 40 };
    origin.accounts.set(request.account!, { usage, finishReasons: [], ended: true });
    wire.send(...acceptedFor(request));
    wire.send({ type: 'token', choice: 0, text: 'x', completionTokens: 5 });
    await wire.closed;
  };
  const leaving = new AbortController();
  const response = await worker.post(
    { model: 'org/tiny', prompt: 'abc', max_tokens: 200, stream: true },
    { headers: { authorization: `Bearer ${key}` }, signal: leaving.signal },
  );
  await response.body!.getReader().read();
  leaving.abort();
  const { body } = await eventually(
    () => admin(worker, 'GET', '/usage?tenant=unseen'),
    (answer) => answer.body.total.requests === 1,
  );
  expect(body.total).toMatchObject({ cancelled: 1, completion_tokens: 40 });
});
