import { copyFileSync, mkdtempSync, readdirSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { migrate, migrateLocalDatabases } from '../../origin/cli/start/local-databases.ts';
import { startWorkerd } from './support/workerd.ts';

test('migrations run once, in the order of their names, and one that fails leaves nothing behind', async () => {
  const { db, workerd } = await startWorkerd('export default {};');
  onTestFinished(() => workerd.dispose());
  const folder = mkdtempSync(path.join(tmpdir(), 'migrations-'));
  const write = (name: string, sql: string) => writeFileSync(path.join(folder, name), sql);
  const rows = async () => (await db.prepare('SELECT name FROM words').all()).results;

  write('0002_words.sql', "-- One; two.\nINSERT INTO words VALUES ('a;b');");
  write('0001_table.sql', 'CREATE TABLE words (name TEXT);');
  await migrate(db, folder);
  await migrate(db, folder);
  expect(await rows()).toEqual([{ name: 'a;b' }]);

  write('0003_more.sql', "INSERT INTO words VALUES ('c'); INSERT INTO none VALUES (1);");
  await expect(migrate(db, folder)).rejects.toThrow('none');
  expect(await rows()).toEqual([{ name: 'a;b' }]);
  write('0003_more.sql', "INSERT INTO words VALUES ('c');");
  await migrate(db, folder);
  expect(await rows()).toEqual([{ name: 'a;b' }, { name: 'c' }]);
});

test('a state directory is migrated again only if there are other files', async () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'state-'));
  const databases = [{ binding: 'DB', folder }];
  const write = (name: string, sql: string) => writeFileSync(path.join(folder, name), sql);
  const state = path.join(folder, 'state');
  write('0001_table.sql', 'CREATE TABLE words (name TEXT);');
  await migrateLocalDatabases(databases, state);
  const before = readdirSync(state, { recursive: true }).length;
  await migrateLocalDatabases(databases, state);
  expect(readdirSync(state, { recursive: true })).toHaveLength(before);
  write('0002_more.sql', 'INSERT INTO none VALUES (1);');
  await expect(migrateLocalDatabases(databases, state)).rejects.toThrow('none');
  write('0002_more.sql', "INSERT INTO words VALUES ('a');");
  await migrateLocalDatabases(databases, state);
});

test('the single requests of version 0.2.0 are kept, and its Worker can add to them', async () => {
  const { db, workerd } = await startWorkerd('export default {};');
  onTestFinished(() => workerd.dispose());
  const all = path.resolve(import.meta.dirname, '../../worker/usage-migrations');
  const folder = mkdtempSync(path.join(tmpdir(), 'migrations-'));
  for (const name of readdirSync(all).filter((file) => file < '0006')) {
    copyFileSync(path.join(all, name), path.join(folder, name));
  }
  const add = (id: string, at: number) =>
    db
      .prepare(
        'INSERT INTO requests (tenant_id, request_id, sequence, started_at, record) VALUES (?, ?, ?, ?, ?)',
      )
      .bind('acme', id, 1, at, `{"requestId":"${id}"}`)
      .run();
  await migrate(db, folder);
  await add('a', 2);
  await add('b', 1);
  await migrate(db, all);
  await add('c', 3);
  const { results } = await db.prepare('SELECT * FROM requests ORDER BY id').all();
  expect(results).toMatchObject([
    { id: 1, tenant_id: 'acme', request_id: 'b', sequence: 1, started_at: 1, record: '{"requestId":"b"}' },
    { id: 2, request_id: 'a', started_at: 2 },
    { id: 3, request_id: 'c', started_at: 3 },
  ]);
});
