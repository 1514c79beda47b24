import type { Miniflare } from 'miniflare';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { UsageGroup } from '../../../shared/usage.ts';
import type { UsageFilter } from '../../../worker/usage/usage-query.ts';
import type { UsageRecord } from '../../../worker/usage/usage-record.ts';
import { migrate } from '../support/database.ts';
import { startWorkerd } from '../support/workerd.ts';

/** A Worker with only the ledger and its queries. */
const LEDGER_WORKER = `
  import { addToLedger } from './usage/usage-ledger.ts';
  import { queryUsage } from './usage/usage-query.ts';
  export default {
    async fetch(request, env) {
      const { add, ask } = await request.json();
      return Response.json(add ? ((await addToLedger(env.DB, ...add)) ?? null) : (await queryUsage(env.DB, ...ask)).rows);
    },
  };
`;

let workerd: Miniflare;
beforeAll(async () => {
  const { db, ...started } = await startWorkerd(LEDGER_WORKER);
  workerd = started.workerd;
  await migrate(db);
});
afterAll(() => workerd?.dispose());

const send = async (message: unknown): Promise<unknown> =>
  (await workerd.dispatchFetch('http://ledger/', { method: 'POST', body: JSON.stringify(message) })).json();

const recordOf = (fields: Partial<UsageRecord>): UsageRecord => ({
  requestId: 'r',
  tenantId: 'acme',
  keyId: 'key',
  model: 'tiny',
  upstream: null,
  errorCode: null,
  usage: { promptTokens: 0, cachedTokens: 0, completionTokens: 0 },
  status: 'completed',
  cost: 0,
  priceVersion: null,
  finishReasons: [],
  startedAt: Date.UTC(2026, 0, 1),
  latencyMs: 1,
  firstTokenMs: null,
  ...fields,
});

/** Adds the records in batches of one. */
async function add(tenant: string, records: readonly UsageRecord[]): Promise<void> {
  for (const [cursor, record] of records.entries()) {
    await send({ add: [tenant, cursor, [{ sequence: cursor + 1, record }]] });
  }
}

const EVERYTHING: UsageFilter = {
  from: '2026-01-01',
  to: '2026-12-31',
  tenantId: null,
  keyId: null,
  model: null,
  endUser: null,
};

const ask = (filter: Partial<UsageFilter>, ...groups: readonly UsageGroup[]) =>
  send({ ask: [{ ...EVERYTHING, ...filter }, groups] });

test('sums all batches under the day on which each request began', async () => {
  const usage = { promptTokens: 5, cachedTokens: 3, completionTokens: 7 };
  const more = {
    usage,
    finishReasons: ['stop', 'length', 'length'] as const,
    cost: 21,
    latencyMs: 40,
    firstTokenMs: 9,
  };
  const statuses = ['completed', 'failed', 'cancelled', 'abandoned'] as const;
  const twice = [...statuses, ...statuses].map((status) =>
    recordOf({ tenantId: 'sums', status, ...more, startedAt: Date.UTC(2026, 0, 31, 23, 59, 59, 999) }),
  );
  await add('sums', twice);
  expect(await ask({ tenantId: 'sums' }, 'day')).toEqual([
    {
      day: '2026-01-31',
      requests: 8,
      completed: 2,
      failed: 2,
      cancelled: 2,
      abandoned: 2,
      finish_stop: 8,
      finish_length: 16,
      prompt_tokens: 40,
      cached_tokens: 24,
      completion_tokens: 56,
      cost_micros: 168,
      latency_ms: 320,
      first_token_ms: 72,
      first_tokens: 8,
    },
  ]);
});

test('filters by days (inclusive), tenant, key and model', async () => {
  const on = (day: number, keyId: string, model: string) =>
    recordOf({ tenantId: 'asked', keyId, model, startedAt: Date.UTC(2026, 1, day) });
  await add('asked', [on(1, 'a', 'm'), on(2, 'a', 'n'), on(3, 'b', 'm'), on(4, 'b', 'n')]);
  await add('stranger', [recordOf({ tenantId: 'stranger', startedAt: Date.UTC(2026, 1, 2) })]);
  const days = async (filter: Partial<UsageFilter>) =>
    ((await ask({ tenantId: 'asked', ...filter }, 'day')) as { day: string }[]).map(({ day }) =>
      day.slice(8),
    );
  expect(await days({})).toEqual(['01', '02', '03', '04']);
  expect(await days({ from: '2026-02-02', to: '2026-02-03' })).toEqual(['02', '03']);
  expect(await days({ keyId: 'a' })).toEqual(['01', '02']);
  expect(await days({ model: 'm' })).toEqual(['01', '03']);
  expect(await days({ keyId: 'b', model: 'n' })).toEqual(['04']);
});
