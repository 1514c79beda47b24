import { readdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { migrate, migrateLocalDatabases } from '../../origin/cli/start/local-databases.ts';
import { newDirectory } from '../support/new-directory.ts';
import { startWorkerd } from './support/workerd.ts';

test('migrations run once, in the order of their names, and one that fails leaves nothing behind', async () => {
  const { db, workerd } = await startWorkerd('export default {};');
  onTestFinished(() => workerd.dispose());
  const folder = newDirectory();
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
  const folder = newDirectory();
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
