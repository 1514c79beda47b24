import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { ADMIN_KEY_SHA256, admin, tenantWithKey } from '../../admin/admin-client.ts';
import { eventually } from '../../support/eventually.ts';
import type { Script } from '../../support/fake-origin.ts';
import { acceptedFor, tokenEvent } from '../../support/scripts.ts';
import type { WorkerClient } from '../../support/worker.ts';
import { workerForTests } from '../../support/worker-for-tests.ts';

/** The usage records of streams. */

const { worker, origin } = workerForTests({
  ADMIN_KEY_SHA256,
  // Longer than a test: no reservation expires.
  RESERVATION_TTL_MS: '600000',
});

/** Returns the usage of one stream of a new tenant, read to its end. */
async function billed(tenant: string, script?: Script, fields: Readonly<Record<string, unknown>> = {}) {
  if (script) origin.script = script;
  const { key } = await tenantWithKey(worker, tenant);
  const body = { model: 'org/tiny', prompt: 'Hi', max_tokens: 4, stream: true, ...fields };
  const answer = await worker.post(body, { headers: { authorization: `Bearer ${key}` } });
  await answer.text();
  return usageOf(worker, tenant);
}

async function usageOf(client: WorkerClient, tenant: string) {
  const { body } = await eventually(
    () => admin(client, 'GET', `/usage?tenant=${tenant}&group_by=model`),
    (answer) => answer.body.total.requests === 1,
  );
  return body.data[0] as unknown as Readonly<Record<string, number | null>>;
}

test('a completed stream is recorded with its finish reasons and the time to the first token', async () => {
  const total = await billed('whole', undefined, { n: 2, max_tokens: 3 });
  expect(total).toMatchObject({ completed: 1, finish_length: 2, prompt_tokens: 2, completion_tokens: 6 });
  const { mean_first_token_ms: first, mean_latency_ms: all } = total;
  expect(first).not.toBeNull();
  expect(first).toBeGreaterThanOrEqual(0);
  expect(first).toBeLessThanOrEqual(all!);
});

test('a stream that ends with an error event is recorded as failed, with the tokens before it', async () => {
  const error = { code: 'upstream_error', message: 'Broken.', param: null, retryable: true } as const;
  const total = await billed('failed', (request, wire) => {
    wire.send(...acceptedFor(request), tokenEvent(1), tokenEvent(2), { type: 'error', ...error });
    wire.end();
  });
  expect(total).toMatchObject({ failed: 1, completed: 0, prompt_tokens: 2, completion_tokens: 2 });
});

test('a stream whose connection breaks is recorded as failed, with all tokens that the origin sent', async () => {
  const total = await billed('broken', async (request, wire) => {
    wire.send(...acceptedFor(request));
    wire.send(tokenEvent(1), tokenEvent(2));
    await sleep(20);
    wire.die();
  });
  expect(total).toMatchObject({ failed: 1, prompt_tokens: 2, completion_tokens: 2 });
});
