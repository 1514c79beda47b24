import { expect, test } from 'vitest';
import { ADMIN_KEY_SHA256, admin, completion, tenantWithKey } from '../../admin/admin-client.ts';
import { eventually } from '../../support/eventually.ts';
import { open, Stage } from '../../support/stage.ts';
import { workerForTests } from '../../support/worker-for-tests.ts';
import { WorkerdLog } from '../../support/workerd-log.ts';

/** Depending on timing, workerd logs this line if an object restarts while it sends a stream to the Worker. */
const log = new WorkerdLog(/ReadableStream received over RPC disconnected prematurely/);

const { worker, origin } = workerForTests(
  // No lease ends while a test may wait for its end.
  { ADMIN_KEY_SHA256, LEASE_MS: '600000' },
  { entry: 'test/worker/support/restarting-objects.ts', log },
);

const tell = async (kind: 'limiter' | 'answer' | 'stream', action: string, name: string) =>
  (await worker.request(`/object/${kind}/${action}/${name}`)).json();

test('a limiter that restarts while a request runs is told of its end, long before its lease is over', async () => {
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

test('a key that takes another one’s place is shown, although the limiter restarts meanwhile', async () => {
  const { key, keyId } = await tenantWithKey(worker, 'rotating');
  await tell('limiter', 'deafen', 'rotating');
  const { status, body } = await admin(worker, 'POST', `/keys/${keyId}/rotate`, { overlap_seconds: 0 });
  expect(status).toBe(201);
  expect((await completion(worker, key)).status).toBe(401);
  expect((await completion(worker, body.key)).status).toBe(200);
});

test('of a suspension and its end at the same time, the one that the record tells holds', async () => {
  const { key } = await tenantWithKey(worker, 'wavering');
  await tell('limiter', 'dawdle', 'wavering');
  const suspended = async () => (await admin(worker, 'GET', '/tenants/wavering')).body.suspended;
  const first = admin(worker, 'PATCH', '/tenants/wavering', { suspended: true });
  await eventually(suspended, (is) => is);
  const second = await admin(worker, 'PATCH', '/tenants/wavering', { suspended: false });
  expect([(await first).status, second.status, await suspended()]).toEqual([200, 200, false]);
  expect((await completion(worker, key)).status).toBe(200);
});

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
  await tell('answer', 'restart', 'keeping/once');
  stage.endAll();
  expect((await first).status).toBe(200);
  const second = await ask();
  expect(second.headers.get('idempotent-replayed')).toBe('true');
});

test('a claim whose answer gets lost is the claim of the same request all the same', async () => {
  const ask = () =>
    worker.post({ model: 'org/tiny', prompt: 'Hi' }, { headers: { 'idempotency-key': 'unheard' } });
  await tell('answer', 'deafen', 'development/unheard');
  const first = await ask();
  expect([first.status, first.headers.get('idempotent-replayed')]).toEqual([200, null]);
  const second = await ask();
  expect([second.status, second.headers.get('idempotent-replayed')]).toEqual([200, 'true']);
  expect(origin.requests).toHaveLength(1);
  // For an hour.
  expect(await tell('answer', 'remaining', 'development/unheard')).toBeGreaterThan(3_000_000);
});

/** A resumable stream that has begun: the hexadecimal part of its name. */
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

/** An error, and then the end. */
function expectInterruption(text: string): void {
  const events = dataOf(text);
  expect(events.at(-1)).toBe('[DONE]');
  expect(JSON.parse(events.at(-2)!)).toMatchObject({ error: { code: 'upstream_error', param: null } });
}

const resume = async (stream: string): Promise<string> =>
  (await worker.request(`/v1/completions/cmpl-${stream}/stream`)).text();

test('a resumable stream whose object restarts ends with an error, and says so to everyone who resumes it', async () => {
  new Stage(origin);
  const stream = await beginStream();
  await tell('stream', 'restart', stream);
  const rest = await resume(stream);
  expectInterruption(rest);
  expect(await resume(stream)).toBe(rest);
  expect(log.lines.length).toBeLessThanOrEqual(1);
});

test('a resumable stream that breaks off as if it were complete ends with an error', async () => {
  const answer = await worker.post(
    { model: 'org/tiny', prompt: 'Hi', stream: true },
    { headers: { 'x-resumable': 'true', 'x-cut': 'true' } },
  );
  expectInterruption(await answer.text());
});

test('a client that reads so slowly that its stream’s time is over is told that it lacks the end', async () => {
  new Stage(origin);
  const stream = await beginStream();
  expectInterruption(String(await tell('stream', 'lag', stream)));
});

test('nothing is stored of a stream that never was, and nothing is left of one whose time is over', async () => {
  const unknown = '0'.repeat(32);
  expect(await resume(unknown)).toContain('not_found');
  expect(await tell('stream', 'tables', unknown)).toBe(0);
  const stream = await beginStream();
  expect(await tell('stream', 'tables', stream)).toBeGreaterThan(0);
  await tell('stream', 'forget', stream);
  expect(await tell('stream', 'tables', stream)).toBe(0);
  expect(await resume(stream)).toContain('not_found');
});
