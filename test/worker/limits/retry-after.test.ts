import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { randomFrom } from '../../support/random.ts';
import { ADMIN_KEY_SHA256, type AnswerBody, admin, tenantWithKey } from '../admin/admin-client.ts';
import { acceptedFor, defaultScript, doneFor, finishOf, tokenEvent } from '../support/scripts.ts';
import { workerForTests } from '../support/worker-for-tests.ts';

/** Half an hour before the end of a day and of a month. */
const START = Date.UTC(2100, 0, 31, 23, 30);

const { worker, origin } = workerForTests(
  { ADMIN_KEY_SHA256 },
  { entry: 'test/worker/support/entries/standing-clock.ts' },
);

/** Sends one request at this time of the Worker's clock. */
async function ask(key: string, at: number, maxTokens: number) {
  const response = await worker.post(
    { model: 'org/tiny', prompt: [1], max_tokens: maxTokens },
    { headers: { authorization: `Bearer ${key}`, 'x-now': String(at) } },
  );
  const body = (await response.json()) as AnswerBody;
  const { status, headers } = response;
  return {
    status,
    type: status === 200 ? null : body.error.type,
    waitMs: Number(headers.get('retry-after-ms') ?? Number.NaN),
    waitSeconds: headers.get('retry-after'),
    retry: headers.get('x-should-retry'),
  };
}

describe('retry-after', () => {
  test('admits a client after exactly this time, and not 1 ms earlier', async () => {
    const { key } = await tenantWithKey(
      worker,
      'patient',
      { requests_per_minute: 7, tokens_per_minute: 60 },
      { limits: { requests_per_minute: 5 } },
    );
    const random = randomFrom(7);
    const draw = (below: number) => Math.floor(random() * below);
    const refusals = { requests: 0, tokens: 0 };
    let now = START;
    for (let round = 0; round < 60; round += 1) {
      now += draw(6000);
      const tokens = 1 + draw(30);
      const first = await ask(key, now, tokens);
      if (first.status === 200) continue;
      const { type, waitMs } = first;
      expect(first).toMatchObject({
        status: 429,
        retry: 'true',
        waitSeconds: String(Math.ceil(waitMs / 1000)),
      });
      expect(waitMs).toBeLessThanOrEqual(60_000);
      expect(await ask(key, now + waitMs - 1, tokens)).toMatchObject({ status: 429, waitMs: 1 });
      now += waitMs;
      expect((await ask(key, now, tokens)).status).toBe(200);
      refusals[type as 'requests' | 'tokens'] += 1;
    }
    // Both kinds of limits occurred.
    expect(Math.min(refusals.requests, refusals.tokens)).toBeGreaterThan(3);
  });

  test('is long enough in whole seconds', async () => {
    const { key } = await tenantWithKey(worker, 'coarse', { requests_per_minute: 1 });
    expect((await ask(key, START + 321, 1)).status).toBe(200);
    const { waitMs, waitSeconds } = await ask(key, START + 1500, 1);
    expect([waitMs, waitSeconds]).toEqual([58_500, '59']);
    expect((await ask(key, START + 1500 + 59_000, 1)).status).toBe(200);
  });

  test('admits a retry after a slot has become free', async () => {
    const { key } = await tenantWithKey(worker, 'single', { concurrent_requests: 1 });
    const begun = Promise.withResolvers<void>();
    const end = Promise.withResolvers<void>();
    origin.script = async (request, wire) => {
      begun.resolve();
      await end.promise;
      return defaultScript(request, wire);
    };
    const running = ask(key, START, 1);
    await begun.promise;
    const { status, waitMs } = await ask(key, START, 1);
    expect([status, waitMs]).toEqual([429, 1000]);
    end.resolve();
    expect((await running).status).toBe(200);
    expect((await ask(key, START + waitMs, 1)).status).toBe(200);
  });

  test('is absent for a spent day, which ends at midnight UTC', async () => {
    const { key } = await tenantWithKey(worker, 'daily', { tokens_per_day: 20 });
    expect((await ask(key, START, 8)).status).toBe(200);
    expect(await ask(key, START, 11)).toMatchObject({
      status: 429,
      type: 'insufficient_quota',
      retry: 'false',
      waitSeconds: null,
    });
    expect((await ask(key, START + 1_799_999, 11)).status).toBe(429);
    expect((await ask(key, START + 1_800_000, 11)).status).toBe(200);
  });
});

describe('the end of tokens_per_minute', () => {
  /** Begins a completion of 400 tokens with 300 per minute. The limit is reached 100 ms before its end. */
  async function reachLimit(tenant: string, waits: boolean): Promise<{ answer: Promise<AnswerBody> }> {
    const { key } = await tenantWithKey(worker, tenant, { tokens_per_minute: 300 });
    await admin(worker, 'PATCH', `/tenants/${tenant}`, { wait_for_tokens: waits });
    const begun = Promise.withResolvers<void>();
    const late = Promise.withResolvers<void>();
    origin.script = async (request, wire) => {
      wire.send(...acceptedFor(request));
      begun.resolve();
      await late.promise;
      for (let token = 1; token <= 400; token += 1) wire.send(tokenEvent(token, 'x'));
      wire.send(finishOf(0, 'stop', 400), doneFor(request, 400));
      wire.end();
    };
    const headers = { authorization: `Bearer ${key}`, 'x-now': String(START) };
    const answer = worker.post({ model: 'org/tiny', prompt: [1], max_tokens: 1_000 }, { headers });
    await begun.promise;
    await setClock(START + 59_900);
    late.resolve();
    return { answer: answer.then((response) => response.json() as Promise<AnswerBody>) };
  }
  const setClock = (at: number) => worker.request('/v1/models', { headers: { 'x-now': String(at) } });

  test('ends a completion with the finish reason length', async () => {
    const { choices, usage } = await (await reachLimit('impatient', false)).answer;
    expect(choices[0]!.finish_reason).toBe('length');
    expect(usage).toMatchObject({ total_tokens: 300, limit_reached: 'tokens_per_minute' });
  });

  test('pauses a completion until the minute has room, if the tenant waits for tokens', async () => {
    const { answer } = await reachLimit('waiting', true);
    expect(await Promise.race([answer, sleep(500, 'waits')])).toBe('waits');
    await setClock(START + 60_000);
    const { choices, usage } = await answer;
    expect(choices[0]!.finish_reason).toBe('stop');
    expect(usage).toMatchObject({ completion_tokens: 400 });
    expect(usage).not.toHaveProperty('limit_reached');
  });
});
