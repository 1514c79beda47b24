import { expect, type TestContext } from 'vitest';
import { ADMIN_KEY_SHA256, completion, tenantWithKey } from '../admin/admin-client.ts';
import { eventually } from '../support/eventually.ts';
import { startFakeOrigin } from '../support/fake-origin.ts';
import { holdRequests } from '../support/scripts.ts';
import { startWorker } from '../support/worker.ts';

/** Asks for what a running request has reserved, and again after its end. */
export async function askBesideReservation({ onTestFinished }: TestContext): Promise<void> {
  const origin = await startFakeOrigin();
  const worker = await startWorker(origin, { ADMIN_KEY_SHA256, RESERVATION_TTL_MS: '600000' });
  onTestFinished(async () => {
    await worker.stop();
    await origin.stop();
  });
  const { key } = await tenantWithKey(worker, 'in-flight', { tokens_per_day: 60 });
  const held = holdRequests(origin);
  const leave = new AbortController();
  const running = worker.post(
    { model: 'org/tiny', prompt: [1], max_tokens: 50 },
    { headers: { authorization: `Bearer ${key}` }, signal: leave.signal },
  );
  await held.begun;
  const ask = (max_tokens: number) => completion(worker, key, { prompt: [1], max_tokens });
  const { status, headers, body } = await ask(20);
  expect([status, headers.get('x-should-retry')]).toEqual([429, 'true']);
  expect(Number(headers.get('retry-after'))).toBeLessThanOrEqual(30);
  expect(body.error).toMatchObject({ type: 'tokens', code: 'rate_limit_exceeded' });
  expect(body.error.message).toMatch(/Used 51, Requested 21\. Running requests have reserved .+ again in/);
  expect((await ask(60)).body.error.type).toBe('insufficient_quota');
  leave.abort();
  await running.catch(() => {});
  await held.left;
  origin.reset();
  const answer = await eventually(
    () => ask(20),
    (one) => one.status === 200 || one.body.error.type === 'insufficient_quota',
  );
  expect([answer.status, origin.faults]).toEqual([200, []]);
}
