import { setTimeout as sleep } from 'node:timers/promises';
import type { Miniflare } from 'miniflare';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type * as z from 'zod';
import type { FinishReason, Usage } from '../../../../shared/generation.ts';
import { UNLIMITED } from '../../../../shared/tenant.ts';
import type { usageAccount } from '../../../../shared/usage.ts';
import type { SettlementRequest } from '../../../../worker/limits/quota/protocol.ts';
import { forAllTests } from '../../../support/for-tests.ts';
import { serve } from '../../../support/local-server.ts';
import { newDirectory } from '../../../support/new-directory.ts';
import { randomFrom } from '../../../support/random.ts';
import { type Database, migrate } from '../../support/database.ts';
import { eventually } from '../../support/eventually.ts';
import { startWorkerd } from '../../support/workerd.ts';
import { WorkerdLog } from '../../support/workerd-log.ts';
import { type Call, callLimiter, LIMITER_WORKER } from '../objects/limiter-worker.ts';

/**
 * The usage of a tenant under faults: Workers that vanish, settle twice or too late, a database of the
 * summary that is unavailable for a while, and a limiter that restarts. In the end, ledger and summary must
 * have exactly the generated tokens and finish reasons. The clock stands in a year in which no alarm rings by
 * itself, because a busy machine may pause for longer than a reservation lives.
 */

const REQUESTS = 60;
const RESERVATION_TTL_MS = 1500;

let now = Date.UTC(2100, 0, 1);
let state: string;
const accounts = forAllTests(startAccounts);
let workerd: Miniflare;
let db: Database;
const log = new WorkerdLog(/"event":"usage_report_failed"/);

const start = async (): Promise<void> => {
  const objects = { LIMITER: 'TenantLimiter' };
  const bindings = {
    ORIGIN_URL: accounts.url,
    ORIGIN_SECRET: 'not checked here, at least 32 bytes',
    USAGE_REPORT_MS: '400',
  };
  ({ workerd, db } = await startWorkerd(LIMITER_WORKER, objects, state, bindings, log));
  // A restart takes a second.
  now += 1_000;
  await callLimiter(workerd, { tenant: 'none', method: 'pass', args: [now - Date.now()] });
};

/** Half a second passes, and the alarm of a tenant's limiter rings. */
async function pass(tenant: string): Promise<void> {
  now += 500;
  await callLimiter(workerd, { tenant, method: 'pass', args: [500] });
}

beforeAll(async () => {
  state = newDirectory();
  await start();
  await migrate(db);
});
afterAll(() => workerd?.dispose());

/** The origin's usage accounts. */
interface Accounts {
  readonly url: string;
  /** Successive answers. The last one repeats. */
  readonly known: Map<string, (z.input<typeof usageAccount> | 'away')[]>;
  /** Times of the requests. */
  readonly asked: Map<string, number[]>;
  stop(): Promise<void>;
}

async function startAccounts(): Promise<Accounts> {
  const known: Accounts['known'] = new Map();
  const asked: Accounts['asked'] = new Map();
  const { url, stop } = await serve((request, response) => {
    const name = new URL(request.url ?? '', 'http://origin').searchParams.get('account') ?? '';
    const answers = known.get(name) ?? [];
    asked.set(name, [...(asked.get(name) ?? []), now]);
    const answer = (answers.length > 1 ? answers.shift() : answers[0]) ?? null;
    if (answer === 'away') response.destroy();
    else response.end(JSON.stringify(answer));
  });
  return { url, known, asked, stop };
}

const call = (method: Call['method'], ...args: readonly unknown[]): Promise<unknown> =>
  callLimiter(workerd, { tenant: 'simulated', method, args });

interface Generated {
  requests: number;
  prompt: number;
  completion: number;
  stop: number;
  length: number;
}

/** Runs one request from its reservation to its end, and adds the generated tokens to `generated`. */
async function request(id: string, draw: (below: number) => number, generated: Generated): Promise<void> {
  const reservation = {
    requestId: id,
    tenantId: 'simulated',
    keyId: `key-${draw(3)}`,
    model: `model-${draw(2)}`,
    tokens: 500,
    tenantLimits: UNLIMITED,
    keyLimits: UNLIMITED,
    ttlMs: RESERVATION_TTL_MS,
  };
  await call('reserve', reservation, []);
  // The answer was lost and the Worker asks again: still one request.
  if (draw(5) === 0) await call('reserve', reservation, []);
  generated.requests += 1;
  const usage = { promptTokens: 1 + draw(50), cachedTokens: 0, completionTokens: 0 };
  generated.prompt += usage.promptTokens;
  for (let step = draw(4); step >= 0; step -= 1) {
    const tokens = draw(30);
    usage.completionTokens += tokens;
    generated.completion += tokens;
    await call('renew', id, { usage: { ...usage }, upstream: 'origin', ttlMs: RESERVATION_TTL_MS });
  }
  // The Worker vanishes: expiry must bill the last renewal,
  if (draw(4) === 0) return;
  // or the origin's account with its finish reasons,
  const finishReasons = Array.from(
    { length: 1 + draw(2) },
    (): FinishReason => (draw(2) === 0 ? 'stop' : 'length'),
  );
  for (const reason of finishReasons) generated[reason] += 1;
  // or what the origin has generated since then. A stream may even continue for a while.
  if (draw(3) === 0) {
    const sofar = { ...usage, completionTokens: usage.completionTokens + draw(30) };
    const total = { ...usage, completionTokens: sofar.completionTokens + draw(30) };
    generated.completion += total.completionTokens - usage.completionTokens;
    accounts.known.set(id, [
      { usage: sofar, finishReasons: [], ended: false },
      { usage: total, finishReasons, ended: true },
    ]);
    return;
  }
  const settlement = {
    status: ['completed', 'failed', 'cancelled'][draw(3)],
    errorCode: null,
    finishReasons,
    upstream: 'origin',
    latencyMs: 1,
    firstTokenMs: null,
  };
  const settle = (told: typeof usage, inquire = false) =>
    call('settle', [{ requestId: id, settlement: { ...settlement, usage: told }, inquire }]);
  // The client disconnected or the stream broke off: the origin knows more, unless it restarted or is
  // unreachable.
  if (draw(3) === 0) {
    const total = { ...usage, completionTokens: usage.completionTokens + draw(30) };
    const fate = draw(3);
    const account = { usage: total, finishReasons, ended: true };
    if (fate > 0) {
      generated.completion += total.completionTokens - usage.completionTokens;
      accounts.known.set(id, fate === 1 ? [account] : ['away', { ...account, ended: false }, account]);
    }
    await settle(usage, true);
    if (draw(2) === 0) await settle(usage, true);
    return;
  }
  await settle(usage);
  if (draw(3) === 0) await settle({ ...usage, completionTokens: 10_000 });
}

const SUMS =
  'SUM(requests) AS requests, SUM(prompt_tokens) AS prompt, SUM(completion_tokens) AS completion, SUM(finish_stop) AS stop, SUM(finish_length) AS length';

/** What the summary has, after the ledger of the tenant has all requests. */
async function totals(): Promise<Record<string, number>> {
  await pass('simulated');
  const sql = `SELECT ${SUMS} FROM usage_summary WHERE tenant_id = 'simulated'`;
  return (await db.prepare(sql).all()).results[0] as Record<string, number>;
}

test('bills exactly what was generated, with finish reasons, under all faults', async () => {
  const random = randomFrom(20_261_120);
  const draw = (below: number) => Math.floor(random() * below);
  const generated: Generated = { requests: 0, prompt: 0, completion: 0, stop: 0, length: 0 };
  const wave = (from: number) =>
    Promise.all(
      Array.from({ length: REQUESTS / 3 }, (_, index) => request(`r${from + index}`, draw, generated)),
    );
  await wave(0);
  // The database is unavailable: the news wait.
  await db.prepare('ALTER TABLE usage_summary RENAME TO away').run();
  await wave(REQUESTS);
  await pass('simulated');
  await expect.poll(() => log.lines.length).toBeGreaterThan(0);
  await db.prepare('ALTER TABLE away RENAME TO usage_summary').run();
  await wave(2 * REQUESTS);
  // The machine crashes with open reservations and unwritten records.
  await workerd.dispose();
  await start();
  const summary = await eventually(totals, ({ requests }) => requests === generated.requests);
  expect(summary).toEqual(generated);
  expect(await call('query', `SELECT ${SUMS} FROM sums`)).toEqual([generated]);
  expect(generated.requests).toBe(REQUESTS);
});

/** Waits for the row of a tenant with a single request. */
const rowOf = async (tenant: string): Promise<Record<string, unknown>> => {
  const rows = async () => {
    await pass(tenant);
    return callLimiter(workerd, { tenant, method: 'sums', args: [tenant] }) as Promise<unknown[]>;
  };
  return (await eventually(rows, ({ length }) => length > 0))[0] as Record<string, unknown>;
};

const reservationOf = (tenant: string) => ({
  requestId: tenant,
  tenantId: tenant,
  keyId: 'key',
  model: 'tiny',
  tokens: 500,
  tenantLimits: UNLIMITED,
  keyLimits: UNLIMITED,
  ttlMs: RESERVATION_TTL_MS,
});

const endingOf = (requestId: string, usage: Usage): SettlementRequest => ({
  requestId,
  settlement: {
    status: 'completed',
    errorCode: null,
    finishReasons: ['stop'],
    upstream: 'origin',
    latencyMs: 1,
    firstTokenMs: null,
    usage,
  },
});

test('asks an unreachable origin again about an abandoned request', async () => {
  const usage = { promptTokens: 3, cachedTokens: 0, completionTokens: 40 };
  accounts.known.set('cut-off', ['away', 'away', { usage, finishReasons: ['length'], ended: true }]);
  await callLimiter(workerd, { tenant: 'cut-off', method: 'reserve', args: [reservationOf('cut-off'), []] });
  expect(await rowOf('cut-off')).toMatchObject({ requests: 1, completion_tokens: 40, finish_length: 1 });
  const asked = accounts.asked.get('cut-off')!;
  // The platform may repeat a request after a lost connection.
  expect(asked.at(-1)! - asked[0]!).toBeGreaterThan(RESERVATION_TTL_MS / 2);
});

test('frees the slot of a settled request before the upstream’s account is known', async () => {
  const limits = { ...UNLIMITED, concurrentRequests: 1 };
  const tenant = 'one-at-a-time';
  const reservation = { ...reservationOf(tenant), tenantLimits: limits };
  const ask = (method: Call['method'], ...args: readonly unknown[]) =>
    callLimiter(workerd, { tenant, method, args });
  const usage = { promptTokens: 3, cachedTokens: 0, completionTokens: 4 };
  const more = { ...usage, completionTokens: 9 };
  accounts.known.set(tenant, [{ usage: more, finishReasons: ['stop'], ended: true }]);
  await ask('reserve', reservation, []);
  const ending = endingOf(tenant, usage);
  const left: SettlementRequest = {
    ...ending,
    settlement: { ...ending.settlement, status: 'cancelled', latencyMs: 123, finishReasons: [] },
    inquire: true,
  };
  expect(await ask('reserve', { ...reservation, requestId: 'next' }, [left])).toMatchObject({
    admitted: true,
  });
  expect(await ask('reserve', { ...reservation, requestId: 'third' }, [left])).toMatchObject({
    admitted: false,
  });
  // The settlement overtook the last renewal.
  expect(await ask('renew', tenant, { usage, upstream: 'origin', ttlMs: RESERVATION_TTL_MS })).toBe(false);
  expect(await rowOf(tenant)).toMatchObject({
    requests: 1,
    cancelled: 1,
    completion_tokens: 9,
    finish_stop: 1,
    latency_ms: 123,
  });
});

test('frees the slot of a settled request although the limiter crashes', async () => {
  const tenant = 'down-at-once';
  const limits = { ...UNLIMITED, concurrentRequests: 1 };
  const reservation = { ...reservationOf(tenant), tenantLimits: limits };
  const ask = (method: Call['method'], ...args: readonly unknown[]) =>
    callLimiter(workerd, { tenant, method, args }) as Promise<{ admitted: boolean }>;
  const untilAdmitted = (requestId: string) =>
    eventually(
      async () => {
        await pass(tenant);
        return ask('reserve', { ...reservation, requestId }, []);
      },
      ({ admitted }) => admitted,
    );
  for (let round = 0; round < 3; round += 1) {
    const requestId = `${tenant}-${round}`;
    await untilAdmitted(requestId);
    const usage = { promptTokens: 3, cachedTokens: 0, completionTokens: 4 };
    ask('settle', [{ ...endingOf(requestId, usage), inquire: true }]).catch(() => {});
    await sleep(4 + 4 * round);
    await workerd.dispose();
    await start();
  }
  await untilAdmitted('next');
});
