import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { ADMIN_KEY_SHA256, completion, tenantWithKey } from './admin/admin-client.ts';
import { workerForTests } from './support/worker-for-tests.ts';

/** What lets the Worker of one release run on the records of the next one. */

const { worker } = workerForTests({ ADMIN_KEY_SHA256 });

test('a key whose record a later version has extended still works', async () => {
  const { key, keyId } = await tenantWithKey(worker, 'extended');
  const { database } = worker;
  const limits = JSON.stringify({ laterLimit: 1, requestsPerMinute: 2 });
  await database.prepare('ALTER TABLE keys ADD COLUMN later TEXT').run();
  await database
    .prepare(`UPDATE keys SET later = 'x', limits = ?, scopes = '["completions","later"]' WHERE id = ?`)
    .bind(limits, keyId)
    .run();
  await database.prepare("UPDATE tenants SET dialect = 'later' WHERE id = 'extended'").run();
  expect((await completion(worker, key)).status).toBe(200);
  expect((await completion(worker, key)).status).toBe(200);
  expect((await completion(worker, key)).status).toBe(429);
});

/**
 * Statements after which the Worker of the release before still runs. It knows neither the audit log nor
 * roles.
 */
const ADDITIVE =
  /^(CREATE (TABLE|INDEX|UNIQUE INDEX)|DROP INDEX|INSERT|CREATE TRIGGER \w+ BEFORE \w+ ON audit |END$|UPDATE keys SET role = |ALTER TABLE \w+ ADD COLUMN (?!.*NOT NULL(?!.* DEFAULT)))/;

const migrations = globSync('../../worker/{migrations,usage-migrations}/*.sql', { cwd: import.meta.dirname });

test('migrations only add, so that the running Worker works between migration and deployment', () => {
  expect(migrations.length).toBeGreaterThan(3);
  const statements = migrations.flatMap((file) =>
    readFileSync(path.resolve(import.meta.dirname, file), 'utf8')
      .replaceAll(/--.*$/gm, '')
      .split(';')
      .map((statement) => statement.replaceAll(/\s+/g, ' ').trim())
      .filter((statement) => statement !== ''),
  );
  expect(statements.filter((statement) => !ADDITIVE.test(statement))).toEqual([]);
});
