import { readFileSync } from 'node:fs';
import path from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import { type AuditEntry, runAudited } from '../../../worker/tenants/audit-log.ts';

const MIGRATION = path.resolve(import.meta.dirname, '../../../worker/migrations/0006_roles_and_audit.sql');

const ENTRY: AuditEntry = {
  at: 1,
  actor: 'key',
  actorTenant: 'operator',
  address: null,
  requestId: 'r',
  action: 'replayEvent',
  target: 'acme',
  tenantId: 'acme',
  changes: {},
};

test('an action without statements has its entry, also if its connection has changed nothing before', async () => {
  const database = new DatabaseSync(':memory:');
  database.exec(
    `CREATE TABLE keys (role TEXT, scopes TEXT); ${readFileSync(MIGRATION, 'utf8').replace(/ALTER.*/, '')}`,
  );
  const db = {
    prepare: (sql: string) => ({
      bind: (...values: (string | number | null)[]) => ({ run: () => database.prepare(sql).run(...values) }),
    }),
    batch: async (statements: readonly { run(): unknown }[]) =>
      statements.map((statement) => statement.run()),
  } as unknown as D1Database;
  await runAudited(db, [], ENTRY);
  expect(database.prepare('SELECT action, target FROM audit').all()).toEqual([
    { action: 'replayEvent', target: 'acme' },
  ]);
});
