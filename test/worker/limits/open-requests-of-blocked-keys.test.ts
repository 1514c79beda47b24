import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { ADMIN_KEY_SHA256, admin, tenantWithKey } from '../admin/admin-client.ts';
import type { Wire } from '../support/fake-origin.ts';
import { acceptedFor, tokenEvent } from '../support/scripts.ts';
import { payloadsOf } from '../support/sse.ts';
import { workerForTests } from '../support/worker-for-tests.ts';

const { worker, origin } = workerForTests({ ADMIN_KEY_SHA256 });

/** Sends tokens until the Worker has disconnected. */
async function sendEndlessly(wire: Wire): Promise<void> {
  for (let step = 1; !wire.gone(); step++) {
    wire.send(tokenEvent(step));
    await sleep(20);
  }
}

const BLOCKS = [
  ['revocation of its key', 'revoked', 'invalid_api_key'],
  ['suspension of its tenant', 'suspended', 'tenant_suspended'],
] as const;

const block = (how: 'revoked' | 'suspended', tenant: string, keyId: string) =>
  how === 'revoked'
    ? admin(worker, 'DELETE', `/keys/${keyId}`)
    : admin(worker, 'PATCH', `/tenants/${tenant}`, { suspended: true });

test.each(BLOCKS)('a stream ends with an error event after the %s', async (_, how, code) => {
  const tenant = `stream-${how}`;
  const { key, keyId } = await tenantWithKey(worker, tenant);
  origin.script = (request, wire) => {
    wire.send(...acceptedFor(request));
    return sendEndlessly(wire);
  };
  const body = { model: 'org/tiny', prompt: 'Hi', max_tokens: 2_000, stream: true };
  const response = await worker.post(body, { headers: { authorization: `Bearer ${key}` } });
  expect(response.status).toBe(200);
  expect((await block(how, tenant, keyId)).status).toBe(200);
  const payloads = payloadsOf(await response.text());
  expect(payloads.at(-1)).toMatchObject({ error: { code } });
});

test.each(BLOCKS)(
  'a plain request that has not begun to answer ends with an error after the %s',
  async (_, how, code) => {
    const tenant = `plain-${how}`;
    const { key, keyId } = await tenantWithKey(worker, tenant);
    const begun = Promise.withResolvers<void>();
    origin.script = async (_request, wire) => {
      begun.resolve();
      await wire.closed;
    };
    const body = {
      model: 'org/tiny',
      prompt: 'Hi',
      max_tokens: 2_000,
      response_format: { type: 'json_object' },
    };
    const answer = worker.post(body, { headers: { authorization: `Bearer ${key}` } });
    await begun.promise;
    await block(how, tenant, keyId);
    expect(await (await answer).json()).toMatchObject({ error: { code } });
  },
);

// How long it may take is tested with a clock of its own, in test/worker/generation/block-checks.test.ts.
test('a stream that waits for tokens is kept alive, and ends with an error after the revocation of its key', async () => {
  const { key, keyId } = await tenantWithKey(worker, 'stream-waits', { tokens_per_minute: 300 });
  await admin(worker, 'PATCH', '/tenants/stream-waits', { wait_for_tokens: true });
  origin.script = async (request, wire) => {
    wire.send(...acceptedFor(request));
    for (let step = 1; step <= 400; step += 1) wire.send(tokenEvent(step));
    await wire.closed;
  };
  const body = { model: 'org/tiny', prompt: 'Hi', max_tokens: 2_000, stream: true };
  const response = await worker.post(body, { headers: { authorization: `Bearer ${key}` } });
  let stream = '';
  let revoked: Promise<unknown> | null = null;
  for await (const part of response.body!.pipeThrough(new TextDecoderStream())) {
    stream += part;
    if (/ t\d+.*\n\n: keep-alive\n\n$/.test(stream)) revoked ??= block('revoked', 'stream-waits', keyId);
  }
  await revoked;
  expect(stream).toMatch(/^: keep-alive\n\n(?=data: \{"error")/m);
  expect(payloadsOf(stream).at(-1)).toMatchObject({ error: { code: 'invalid_api_key' } });
  expect(stream.match(/ t\d+/g)!.length).toBeLessThanOrEqual(300);
});
