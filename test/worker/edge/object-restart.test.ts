import { expect, test } from 'vitest';
import { workerForTests } from '../support/worker-for-tests.ts';
import { ADMIN_KEY_SHA256, admin, completion, tenantWithKey } from './admin-client.ts';
import { eventually } from './eventually.ts';
import { open, Stage } from './stage.ts';

const { worker, origin } = workerForTests(
  { ADMIN_KEY_SHA256 },
  { entry: 'test/worker/support/restarting-objects.ts' },
);

const restart = (object: string) => worker.request(`/restart/${object}`);

test('a limiter that restarts while a request runs is told of its end, long before its lease is over', async () => {
  const { key } = await tenantWithKey(worker, 'running', { concurrent_requests: 1 });
  const stage = new Stage(origin);
  const [stream] = await open(worker, key, 1);
  await restart('limiter/running');
  stage.endAll();
  await stream!.text();
  const { body } = await eventually(
    () => admin(worker, 'GET', '/usage?tenant=running'),
    ({ body }) => body.total.requests === 1,
  );
  expect(body.total).toMatchObject({ completion_tokens: stage.generated().completionTokens });
  origin.reset();
  expect((await completion(worker, key)).status).toBe(200);
}, 15_000);

test('an answer is kept, and reaches its caller, although the object that keeps it has restarted meanwhile', async () => {
  const { key } = await tenantWithKey(worker, 'keeping', {});
  const stage = new Stage(origin);
  const ask = () =>
    worker.post(
      { model: 'org/tiny', prompt: 'Hi', max_tokens: 2000 },
      { headers: { authorization: `Bearer ${key}`, 'idempotency-key': 'once' } },
    );
  const first = ask();
  await eventually(
    async () => stage.running,
    (running) => running === 1,
  );
  await restart('answer/keeping/once');
  stage.endAll();
  expect((await first).status).toBe(200);
  const second = await ask();
  expect(second.headers.get('idempotent-replayed')).toBe('true');
});
