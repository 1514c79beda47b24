import type { Miniflare } from 'miniflare';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Limits, UNLIMITED } from '../../../../shared/tenant.ts';
import { type Database, migrate } from '../../support/database.ts';
import { eventually } from '../../support/eventually.ts';
import { startWorkerd } from '../../support/workerd.ts';
import { type Call, callLimiter, LIMITER_WORKER } from './limiter-worker.ts';

let workerd: Miniflare;
let db: Database;

beforeAll(async () => {
  ({ workerd, db } = await startWorkerd(LIMITER_WORKER, { LIMITER: 'TenantLimiter' }));
  await migrate(db);
});
afterAll(() => workerd.dispose());

/** Sends all calls concurrently. */
const call = (...calls: readonly Call[]): Promise<unknown[]> =>
  Promise.all(calls.map((one) => callLimiter(workerd, one)));

const reservation = (
  tenant: string,
  id: string,
  limits: Partial<Limits>,
  { ttlMs = 30_000, keyId = 'key' } = {},
): Call => ({
  tenant,
  method: 'reserve',
  args: [
    {
      requestId: id,
      tenantId: tenant,
      keyId,
      model: 'tiny',
      tokens: 10,
      ttlMs,
      tenantLimits: { ...UNLIMITED, ...limits },
      keyLimits: UNLIMITED,
    },
    [],
  ],
});

const ending = (requestId: string, completionTokens: number) => ({
  requestId,
  settlement: {
    status: 'completed',
    usage: { promptTokens: 3, cachedTokens: 1, completionTokens },
    errorCode: null,
    finishReasons: ['stop'],
    upstream: 'origin',
    latencyMs: 12,
    firstTokenMs: 4,
  },
});

const settlement = (tenant: string, id: string, completionTokens: number): Call => ({
  tenant,
  method: 'settle',
  args: [[ending(id, completionTokens)]],
});

const admitted = (results: unknown[]) =>
  results.filter((result) => (result as { admitted: boolean }).admitted).length;

const ledger = async (tenant: string) =>
  (await call({ tenant, method: 'sums', args: [tenant] }))[0] as Record<string, unknown>[];

describe('a tenant limiter in workerd', () => {
  test('enforces concurrency exactly and frees a slot with each settlement', async () => {
    const ids = Array.from({ length: 30 }, (_, index) => `r${index}`);
    const limits = { concurrentRequests: 7 };
    const first = await call(...ids.map((id) => reservation('slots', id, limits)));
    expect(admitted(first)).toBe(7);
    const running = ids.filter((_, index) => (first[index] as { admitted: boolean }).admitted);
    await call(...running.map((id) => settlement('slots', id, 5)));
    const again = await call(...ids.map((id) => reservation('slots', `again-${id}`, limits)));
    expect(admitted(again)).toBe(7);
  });

  test('counts a repeated reservation of the same request once', async () => {
    const limits = { concurrentRequests: 1, requestsPerMinute: 2 };
    const one = reservation('twice', 'r', limits);
    const both = [await call(one), await call(one)].flat();
    expect(admitted(both)).toBe(2);
    expect(await call(settlement('twice', 'r', 5))).toEqual([1]);
    expect(admitted(await call(reservation('twice', 'next', limits)))).toBe(1);
  });

  test('rejects a revoked key and a suspended tenant at once', async () => {
    const block = (keyId: string | null, blocked: boolean): Call => ({
      tenant: 'guarded',
      method: 'block',
      args: [keyId, blocked],
    });
    expect(admitted(await call(reservation('guarded', 'a', {})))).toBe(1);
    await call(block('key', true));
    expect(await call(reservation('guarded', 'b', {}))).toEqual([
      { admitted: false, refusal: 'revoked', headers: {} },
    ]);
    await call(block(null, true));
    expect(await call(reservation('guarded', 'c', {}))).toEqual([
      { admitted: false, refusal: 'suspended', headers: {} },
    ]);
    const blockOf = (keyId: string): Call => ({ tenant: 'guarded', method: 'blockOf', args: [keyId] });
    expect(await call(blockOf('other'))).toEqual(['suspended']);
    await call(block(null, false));
    expect(await call(blockOf('key'), blockOf('other'))).toEqual(['revoked', null]);
    await call(block('key', false));
    expect(admitted(await call(reservation('guarded', 'd', {})))).toBe(1);
  });

  test('reads the blocks that an older Worker has stored without their times', async () => {
    const tell = async (method: Call['method'], ...args: unknown[]) =>
      (await call({ tenant: 'older', method, args }))[0];
    await tell('query', 'DROP TABLE blocked');
    await tell('query', 'CREATE TABLE blocked (id TEXT PRIMARY KEY) WITHOUT ROWID');
    await tell('query', "INSERT INTO blocked (id) VALUES ('key')");
    await tell('restart');
    expect(await tell('blockOf', 'key')).toBe('revoked');
    const rows = (await tell('query', 'SELECT id, at FROM blocked')) as { id: string; at: number }[];
    expect(rows).toEqual([{ id: 'key', at: expect.any(Number) }]);
    expect(Math.abs(rows[0]!.at - Date.now())).toBeLessThan(60_000);
  });

  test('counts a repeated settlement once, and its ledger has every record at once', async () => {
    const ids = Array.from({ length: 20 }, (_, index) => `r${index}`);
    await call(...ids.map((id) => reservation('counted', id, {})));
    const both = ids.flatMap((id) => [settlement('counted', id, 5), settlement('counted', id, 5)]);
    const results = await call(...both);
    expect(results.filter((ended) => ended === 1)).toHaveLength(20);
    expect(await ledger('counted')).toEqual([
      expect.objectContaining({
        model: 'tiny',
        key_id: 'key',
        requests: 20,
        completed: 20,
        finish_stop: 20,
        prompt_tokens: 60,
        cached_tokens: 20,
        completion_tokens: 100,
        latency_ms: 240,
        first_token_ms: 80,
        first_tokens: 20,
      }),
    ]);
  });

  test('settles requests of many keys together', async () => {
    const keys = Array.from({ length: 120 }, (_, index) => `k${index}`);
    await call(...keys.map((keyId) => reservation('many', keyId, {}, { keyId })));
    expect(await call(...keys.map((id) => settlement('many', id, 5)))).toEqual(keys.map(() => 1));
    const rows = await ledger('many');
    expect(rows).toHaveLength(keys.length);
    expect(rows.every(({ requests, completion_tokens: tokens }) => requests === 1 && tokens === 5)).toBe(
      true,
    );
  });

  test('keeps an expired reservation’s slot free after a restart', async () => {
    const limits = { concurrentRequests: 1 };
    await call(reservation('restarted', 'silent', limits, { ttlMs: 500 }));
    const usage = { promptTokens: 0, cachedTokens: 0, completionTokens: 0 };
    // Renewals for 1 ms: they show whether the reservation has ended, and write no counter.
    const args = ['silent', { usage, upstream: null, ttlMs: 1 }];
    await eventually(
      () => call({ tenant: 'restarted', method: 'renew', args }),
      ([alive]) => alive === false,
    );
    await call({ tenant: 'restarted', method: 'restart', args: [] });
    expect(admitted(await call(reservation('restarted', 'next', limits)))).toBe(1);
  });

  test('keeps reservations after a restart', async () => {
    const limits = { concurrentRequests: 1, requestsPerMinute: 2 };
    await call(reservation('kept', 'first', limits));
    await call({ tenant: 'kept', method: 'restart', args: [] });
    expect(admitted(await call(reservation('kept', 'second', limits)))).toBe(0);
    await call(settlement('kept', 'first', 5));
    await call({ tenant: 'kept', method: 'restart', args: [] });
    expect(admitted(await call(reservation('kept', 'second', limits)))).toBe(1);
  });

  test('records the format of its state, and refuses one that a later version has written', async () => {
    const query = (sql: string) => call({ tenant: 'later', method: 'query', args: [sql] });
    expect(await query('SELECT version FROM format')).toEqual([[{ version: 2 }]]);
    await query('UPDATE format SET version = 3');
    await call({ tenant: 'later', method: 'restart', args: [] });
    await expect(query('SELECT 1')).rejects.toThrow('has format 3; this Worker knows up to 2');
  });

  /** Its periods are objects, and slots a number. It had a row per open request and no journal. */
  test('reads the counters and the open requests that version 0.2.0 stored', async () => {
    const query = (sql: string) => call({ tenant: 'older-counters', method: 'query', args: [sql] });
    const limits = { tokensPerDay: 15, concurrentRequests: 2 };
    await call(reservation('older-counters', 'first', limits));
    const [rows] = (await query('SELECT entry FROM journal')) as [{ entry: string }[]];
    const entry = JSON.parse(rows![0]!.entry);
    const [subjects, open] = [Object.fromEntries(entry.subjects), Object.fromEntries(entry.open)];
    const { requests, tokens, day, month, concurrency } = subjects.tenant;
    expect([day[0][1], month[0][1], concurrency]).toEqual([10, 10, [[0, 1]]]);
    const periodOf = ([[period, used]]: [[number, number]]) => ({ period, used });
    const older = { requests, tokens, day: periodOf(day), month: periodOf(month), running: 1 };
    await query(`INSERT INTO subjects (id, state) VALUES ('tenant', '${JSON.stringify(older)}')`);
    await query('CREATE TABLE reservations (id TEXT PRIMARY KEY, open TEXT NOT NULL) WITHOUT ROWID');
    await query(`INSERT INTO reservations (id, open) VALUES ('first', '${JSON.stringify(open.first)}')`);
    await query('DELETE FROM journal');
    await query('UPDATE format SET version = 1');
    await call({ tenant: 'older-counters', method: 'restart', args: [] });
    expect(await call(reservation('older-counters', 'second', limits))).toMatchObject([
      { admitted: false, refusal: { kind: 'day', used: 10 } },
    ]);
    await call({ tenant: 'older-counters', method: 'restart', args: [] });
    expect(await call(settlement('older-counters', 'first', 1))).toEqual([1]);
    expect(admitted(await call(reservation('older-counters', 'second', limits)))).toBe(1);
  });
});
