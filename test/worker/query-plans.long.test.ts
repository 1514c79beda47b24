import { beforeEach, expect, test } from 'vitest';
import * as summary from '../../worker/limits/usage/usage-summary.ts';
import { ALL_SUMS } from '../../worker/limits/usage/usage-sums.ts';
import * as prices from '../../worker/prices/price-store.ts';
import * as audit from '../../worker/tenants/audit-log.ts';
import * as credits from '../../worker/tenants/credit-store.ts';
import * as keys from '../../worker/tenants/key-store.ts';
import * as plans from '../../worker/tenants/plan-store.ts';
import * as storedKeys from '../../worker/tenants/stored-key.ts';
import * as tenants from '../../worker/tenants/tenant-store.ts';
import * as webhooks from '../../worker/tenants/webhook-store.ts';
import { EVERYTHING } from './limits/usage/usage-fixtures.ts';
import { ENTRY } from './support/audit-entry.ts';
import { workerForTests } from './support/worker-for-tests.ts';

/** Checks SQLite's plan of every statement that the Worker sends to its databases. */

const { worker } = workerForTests();
/** Plan lines of all statements since the start of a test. */
const planned: string[] = [];
beforeEach(() => planned.splice(0));

/** The database, which also explains every statement that is prepared. */
function explaining() {
  const db = worker.database;
  const waiting: Promise<unknown>[] = [];
  const explain = async (sql: string, values: readonly unknown[]) => {
    const { results } = await db
      .prepare(`EXPLAIN QUERY PLAN ${sql}`)
      .bind(...values)
      .all();
    planned.push(...results.map((row) => (row as { detail: string }).detail));
  };
  const prepare = (sql: string) => ({
    bind: (...values: unknown[]) => {
      waiting.push(explain(sql, values));
      return db.prepare(sql).bind(...values);
    },
  });
  const batch = (statements: unknown[]) =>
    (db as unknown as D1Database).batch(statements as D1PreparedStatement[]);
  const explained = { prepare, batch, withSession: () => ({ prepare }) };
  return { db: explained as unknown as D1Database, explained: () => Promise.all(waiting) };
}

/** A scan of a table, or a search by the first column of no index. Subqueries and json_each are in memory. */
const isFullScan = (detail: string): boolean =>
  /^SCAN (keys|tenants|plans|credits|audit|usage_summary|usage_reports)\b/.test(detail);

const KEY: keys.KeyRecord = {
  id: 'k',
  tenantId: 'acme',
  name: 'k',
  hash: 'h',
  scopes: ['models'],
  role: null,
  models: null,
  limits: {},
  createdAt: 0,
  expiresAt: null,
  revokedAt: null,
  disabled: false,
  replacedBy: null,
  allowedAddresses: null,
  metadata: null,
};
const LIMITS = { maxTokens: 1 };
const PRICE = {
  model: 'm',
  validFrom: 0,
  prompt: 1,
  cachedPrompt: 1,
  completion: 1,
  flexFactor: 1_000,
  batchFactor: 1_000,
};

/** One use of each function that sends statements. */
const USES: Readonly<Record<string, (db: D1Database) => Promise<unknown>>> = {
  insertPlan: (db) =>
    plans.insertPlan(db, { id: 'p', name: 'p', limits: {}, weight: 1, createdAt: 0 }, ENTRY),
  readPlan: (db) => plans.readPlan(db, 'p'),
  listPlans: (db) => plans.listPlans(db, '', 9),
  updatePlan: (db) => plans.updatePlan(db, 'p', { limits: LIMITS }, ENTRY),
  removePlan: (db) => plans.removePlan(db, 'unused', ENTRY),
  insertTenant: (db) =>
    tenants.insertTenant(
      db,
      {
        id: 'acme',
        name: 'a',
        planId: 'p',
        limits: {},
        weight: 1,
        dialect: 'openai',
        suspended: false,
        openObjects: false,
        anyKeyOrder: false,
        waitForTokens: false,
        aliases: {},
        createdAt: 0,
      },
      ENTRY,
    ),
  readTenant: (db) => tenants.readTenant(db, 'acme'),
  listTenants: (db) => tenants.listTenants(db, '', 9),
  eraseTenant: (db) => tenants.eraseTenant(db, 'acme', ENTRY),
  erasedTenants: (db) => tenants.erasedTenants(db, 0),
  updateTenant: (db) => tenants.updateTenant(db, 'acme', { name: 'b', limits: LIMITS }, ENTRY),
  insertKey: (db) => keys.insertKey(db, KEY, ENTRY),
  readKeyRecord: (db) => keys.readKeyRecord(db, 'k'),
  listKeys: async (db) => [await keys.listKeys(db, null, '', 9), await keys.listKeys(db, 'acme', '', 9)],
  replaceKey: (db) => keys.replaceKey(db, KEY, { ...KEY, id: 'l' }, 9, ENTRY),
  revokeKey: (db) => keys.revokeKey(db, 'k', 9, ENTRY),
  updateKey: (db) => keys.updateKey(db, 'k', { name: 'b', limits: LIMITS, models: ['m'] }, ENTRY),
  readKey: (db) => storedKeys.readKey(db, 'k'),
  insertPrice: (db) => prices.insertPrice(db, PRICE, ENTRY),
  listPrices: async (db) => [await prices.listPrices(db, null, 0, 9), await prices.listPrices(db, 'm', 0, 9)],
  readPrices: (db) => prices.readPrices(db, 9),
  insertCredits: (db) =>
    credits.insertCredits(db, 'acme', [{ id: 'c', micros: 1, note: '', createdAt: 0 }], ENTRY),
  listCredits: (db) => credits.listCredits(db, 'acme', '', 9),
  readCredit: (db) => credits.readCredit(db, 'acme'),
  setWebhook: (db) => webhooks.setWebhook(db, 'acme', 'https://example.com', ENTRY),
  readWebhook: (db) => webhooks.readWebhook(db, 'acme'),
  runAudited: (db) => audit.runAudited(db, [], ENTRY),
  listEntries: async (db) => {
    for (const tenantId of [null, 'acme']) {
      for (const actor of [null, 'k'])
        await audit.listEntries(db, { from: 0, to: 9, tenantId, actor, action: 'test', search: 'x' }, 9, 9);
    }
  },
  reportUsage: (db) =>
    summary.reportUsage(db, 'acme', 1, [
      { day: '2026-01-01', model: 'm', sums: null },
      { day: '2026-01-02', model: 'm', sums: ALL_SUMS.map(() => 1) },
    ]),
  querySummary: (db) => summary.querySummary(db, { ...EVERYTHING, model: 'm', groups: ['tenant', 'day'] }),
};

const isFunction = ([, value]: [string, unknown]): boolean => typeof value === 'function';
const functionsOf = (...modules: readonly object[]): string[] =>
  modules.flatMap((module) =>
    Object.entries(module)
      .filter(isFunction)
      .map(([name]) => name),
  );

test('explains every function that sends statements', () => {
  const pure = ['changedLimits'];
  expect([...Object.keys(USES), ...pure].toSorted()).toEqual(
    functionsOf(audit, keys, plans, storedKeys, tenants, prices, credits, webhooks, summary).toSorted(),
  );
});

test('reads no whole table in any statement', async () => {
  for (const [name, use] of Object.entries(USES)) {
    const { db, explained } = explaining();
    await use(db);
    await explained();
    expect(planned.splice(0).filter(isFullScan), name).toEqual([]);
  }
});

test('notices a statement that reads a whole table', async () => {
  const { db, explained } = explaining();
  await db.prepare('SELECT * FROM keys WHERE name = ?').bind('k').all();
  await explained();
  expect(planned.filter(isFullScan)).toHaveLength(1);
});
