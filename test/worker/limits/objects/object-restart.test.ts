import { expect, test } from 'vitest';
import { ADMIN_KEY_SHA256, admin, completion, tenantWithKey } from '../../admin/admin-client.ts';
import { eventually } from '../../support/eventually.ts';
import { open, Stage } from '../../support/stage.ts';
import { workerForTests } from '../../support/worker-for-tests.ts';
import { WorkerdLog } from '../../support/workerd-log.ts';

/** Depending on timing, workerd logs this line if an object restarts while it sends a stream. */
const log = new WorkerdLog(/ReadableStream received over RPC disconnected prematurely/);

const { worker, origin } = workerForTests(
  // Longer than a test waits, so that no reservation expires.
  { ADMIN_KEY_SHA256, RESERVATION_TTL_MS: '600000' },
  { entry: 'test/worker/support/entries/restarting-objects.ts', log },
);

const tell = async (kind: 'limiter' | 'answer' | 'stream', action: string, name: string) =>
  (await worker.request(`/object/${kind}/${action}/${name}`)).json();

test('delivers a settlement to a restarted limiter before the reservation expires', async () => {
  const { key } = await tenantWithKey(worker, 'running', { concurrent_requests: 1 });
  const stage = new Stage(origin);
  const [stream] = await open(worker, key, 1);
  await tell('limiter', 'restart', 'running');
  stage.endAll();
  await stream!.text();
  const { body } = await eventually(
    () => admin(worker, 'GET', '/usage?tenant=running'),
    ({ body }) => body.total.requests === 1,
  );
  expect(body.total).toMatchObject({ completion_tokens: stage.generated().completionTokens });
  origin.reset();
  expect((await completion(worker, key)).status).toBe(200);
});

test('the next request frees the slot of a reservation whose answer was lost', async () => {
  const { key } = await tenantWithKey(worker, 'unheard', { concurrent_requests: 1 });
  expect((await completion(worker, key)).status).toBe(200);
  await tell('limiter', 'loseReply', 'unheard');
  expect((await completion(worker, key)).status).toBe(503);
  expect((await completion(worker, key)).status).toBe(200);
  const { body } = await eventually(
    () => admin(worker, 'GET', '/usage?tenant=unheard'),
    (answer) => answer.body.total.requests === 3,
  );
  expect(body.total).toMatchObject({ completed: 2, failed: 1, completion_tokens: 8 });
});

test('a restarted limiter still knows what an end user has used', async () => {
  const { key } = await tenantWithKey(worker, 'again', { user_tokens_per_day: 12 });
  expect((await completion(worker, key, { user: 'a' })).status).toBe(200);
  await tell('limiter', 'restart', 'again');
  expect((await completion(worker, key, { user: 'a', max_tokens: 30 })).status).toBe(429);
  expect((await completion(worker, key, { user: 'b' })).status).toBe(200);
});

test('shows a rotated key although the limiter restarts', async () => {
  const { key, keyId } = await tenantWithKey(worker, 'rotating');
  await tell('limiter', 'deafen', 'rotating');
  const { status, body } = await admin(worker, 'POST', `/keys/${keyId}/rotate`, { overlap_seconds: 0 });
  expect(status).toBe(201);
  expect((await completion(worker, key)).status).toBe(401);
  expect((await completion(worker, body.key)).status).toBe(200);
});

test('shows a key that was made or rotated while the limiter fails, with a warning', async () => {
  const { key, keyId } = await tenantWithKey(worker, 'failing');
  await tell('limiter', 'fail', 'failing');
  const limits = { tokens_per_day: 500 };
  const made = await admin(worker, 'POST', '/keys', { tenant: 'failing', name: 'made', limits });
  const rotated = await admin(worker, 'POST', `/keys/${keyId}/rotate`, { overlap_seconds: 0 });
  expect([made, rotated].map(({ status, body }) => ({ status, ...body }))).toMatchObject([
    { status: 201, warning: expect.stringContaining('could not be compared') },
    { status: 201, warning: expect.stringContaining('old key may work') },
  ]);
  await tell('limiter', 'restart', 'failing');
  for (const one of [made, rotated]) expect((await completion(worker, one.body.key)).status).toBe(200);
  expect((await completion(worker, key)).status).toBe(401);
});

test('ends concurrent suspension and resumption in the recorded state', async () => {
  const { key } = await tenantWithKey(worker, 'wavering');
  await tell('limiter', 'dawdle', 'wavering');
  const suspended = async () => (await admin(worker, 'GET', '/tenants/wavering')).body.suspended;
  const first = admin(worker, 'PATCH', '/tenants/wavering', { suspended: true });
  await eventually(suspended, (is) => is);
  const second = await admin(worker, 'PATCH', '/tenants/wavering', { suspended: false });
  expect([(await first).status, second.status, await suspended()]).toEqual([200, 200, false]);
  expect((await completion(worker, key)).status).toBe(200);
});

test.each([
  ['disabling and enabling', 'PATCH', { disabled: false }, 200],
  ['disabling and revocation', 'DELETE', undefined, 401],
] as const)('ends concurrent %s of a key in the recorded state', async (_, method, body, status) => {
  const tenant = `wavering${status}`;
  const { key, keyId } = await tenantWithKey(worker, tenant);
  const path = `/keys/${keyId}`;
  await tell('limiter', 'dawdle', tenant);
  const first = admin(worker, 'PATCH', path, { disabled: method === 'PATCH' });
  await eventually(
    async () => (await admin(worker, 'GET', `/audit?tenant=${tenant}&action=changeKey`)).body.data.length,
    (count) => count === 1,
  );
  const second = await admin(worker, method, path, body);
  expect([(await first).status, second.status]).toEqual([200, 200]);
  expect((await completion(worker, key)).status).toBe(status);
  expect(await tell('limiter', 'blocks', tenant)).toEqual(status === 401 ? [keyId] : []);
});

test('a key that was ended by a rotation works again once its time is prolonged, and not before', async () => {
  const { key, keyId } = await tenantWithKey(worker, 'prolonged');
  await admin(worker, 'POST', `/keys/${keyId}/rotate`, { overlap_seconds: 0 });
  await admin(worker, 'PATCH', `/keys/${keyId}`, { disabled: false });
  expect(await tell('limiter', 'blocks', 'prolonged')).toEqual([keyId]);
  await admin(worker, 'PATCH', `/keys/${keyId}`, { expires_at: 4_000_000_000 });
  expect((await completion(worker, key)).status).toBe(200);
});

test('stores and returns a response although the idempotency object restarts', async () => {
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
  await tell('answer', 'restart', 'keeping/once');
  stage.endAll();
  expect((await first).status).toBe(200);
  const second = await ask();
  expect(second.headers.get('idempotent-replayed')).toBe('true');
});

test('keeps an idempotency claim whose result was lost', async () => {
  const ask = () =>
    worker.post({ model: 'org/tiny', prompt: 'Hi' }, { headers: { 'idempotency-key': 'unheard' } });
  await tell('answer', 'deafen', 'development/unheard');
  const first = await ask();
  expect([first.status, first.headers.get('idempotent-replayed')]).toEqual([200, null]);
  const second = await ask();
  expect([second.status, second.headers.get('idempotent-replayed')]).toEqual([200, 'true']);
  expect(origin.requests).toHaveLength(1);
  // At least 50 of 60 minutes are left.
  expect(await tell('answer', 'remaining', 'development/unheard')).toBeGreaterThan(3_000_000);
});

/** Starts a resumable stream and returns the hex part of its id. */
async function beginStream(): Promise<string> {
  const answer = await worker.post(
    { model: 'org/tiny', prompt: 'Hi', max_tokens: 2000, stream: true },
    { headers: { 'x-resumable': 'true' } },
  );
  const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader();
  const { value } = await reader.read();
  reader.cancel().catch(() => {});
  return /"cmpl-([0-9a-f]{32})"/.exec(value ?? '')![1]!;
}

const dataOf = (text: string): string[] => [...text.matchAll(/^data: (.*)$/gm)].map(([, data]) => data!);

/** Expects an error event followed by [DONE]. */
function expectInterruption(text: string): void {
  const events = dataOf(text);
  expect(events.at(-1)).toBe('[DONE]');
  expect(JSON.parse(events.at(-2)!)).toMatchObject({ error: { code: 'upstream_error', param: null } });
}

const resume = async (stream: string): Promise<string> =>
  (await worker.request(`/v1/completions/cmpl-${stream}/stream`)).text();

test('ends a resumable stream with an error for all readers after its object restarts', async () => {
  new Stage(origin);
  const stream = await beginStream();
  await tell('stream', 'restart', stream);
  const rest = await resume(stream);
  expectInterruption(rest);
  expect(await resume(stream)).toBe(rest);
  expect(log.lines.length).toBeLessThanOrEqual(1);
});

test('ends a resumable stream that breaks off with an error', async () => {
  const answer = await worker.post(
    { model: 'org/tiny', prompt: 'Hi', stream: true },
    { headers: { 'x-resumable': 'true', 'x-cut': 'true' } },
  );
  expectInterruption(await answer.text());
});

test('sends an error to a reader that is slower than the retention time', async () => {
  new Stage(origin);
  const stream = await beginStream();
  expectInterruption(String(await tell('stream', 'lag', stream)));
});

test('stores nothing for an unknown stream and deletes an expired one', async () => {
  const unknown = '0'.repeat(32);
  expect(await resume(unknown)).toContain('not_found');
  expect(await tell('stream', 'tables', unknown)).toBe(0);
  const stream = await beginStream();
  expect(await tell('stream', 'tables', stream)).toBeGreaterThan(0);
  await tell('stream', 'forget', stream);
  expect(await tell('stream', 'tables', stream)).toBe(0);
  expect(await resume(stream)).toContain('not_found');
});
