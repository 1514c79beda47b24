import { cpSync, globSync, readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { newDirectory } from '../../support/new-directory.ts';
import { BatchClient, lineOf } from '../batches/batch-client.ts';
import { eventually } from '../support/eventually.ts';
import { workerForTests } from '../support/worker-for-tests.ts';
import { ADMIN_KEY, ADMIN_KEY_SHA256, admin, completion, tenantWithKey } from './admin-client.ts';

const state = newDirectory();
const { worker, origin } = workerForTests({ ADMIN_KEY_SHA256, ERASE_AFTER_MS: '50' }, { state });

const UNREADABLE = 'unreadable';
const IDENTIFIER = /^[a-z_][a-z0-9_]*$/i;

/** Returns the rows of all tables of a database, with their tables. */
function rowsOf(file: string): string[] {
  // Alarms are stored in nanoseconds.
  const db = new DatabaseSync(file, { readBigInts: true });
  try {
    const tables = db.prepare("SELECT name FROM sqlite_master WHERE type = 'table'").all();
    return tables
      .map(({ name }) => String(name))
      .filter((name) => IDENTIFIER.test(name))
      .flatMap((name) => {
        const rows = db.prepare(`SELECT * FROM ${name}`).all();
        return rows.map((row) => `${name} ${JSON.stringify(row, (_, value: unknown) => shown(value))}`);
      });
  } catch {
    // The copy was made during a change.
    return [UNREADABLE];
  } finally {
    db.close();
  }
}

const shown = (value: unknown): unknown => {
  if (typeof value === 'bigint') return Number(value);
  return value instanceof Uint8Array ? Buffer.from(value).toString('latin1') : value;
};

/** Copies the stores. A file that vanishes meanwhile makes another copy necessary. */
function copyOfStores(attempts = 20): string {
  const copy = newDirectory();
  try {
    cpSync(state, copy, { recursive: true });
    return copy;
  } catch (thrown) {
    if (attempts === 1) throw thrown;
    return copyOfStores(attempts - 1);
  }
}

/** Returns everything that the stores hold now and that contains one of the words. */
function remains(words: readonly string[]): string[] {
  const copy = copyOfStores();
  const files = globSync('**/*', { cwd: copy }).filter((file) => statSync(path.join(copy, file)).isFile());
  // SQLite deletes the journal of a database that it opens, so journals are read before.
  const plain = files
    .filter((file) => !/\.sqlite(-wal|-shm)?$/.test(file))
    .map((file) => `${file}: ${readFileSync(path.join(copy, file), 'latin1')}`);
  const rows = files
    .filter((file) => file.endsWith('.sqlite'))
    .flatMap((file) => rowsOf(path.join(copy, file)).map((row) => `${file}: ${row}`));
  return [...plain, ...rows].filter((text) => [UNREADABLE, ...words].some((word) => text.includes(word)));
}

const call = (key: string, method: string, to: string, body?: unknown, headers = {}) =>
  worker.request(to, {
    method,
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...headers },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });

/** What tenants do before they are erased. Each leaves something in another store. */
const DEEDS: Readonly<Record<string, (key: string, id: string) => Promise<unknown>>> = {
  completion: (key) => completion(worker, key),
  'end user': (key, id) => completion(worker, key, { user: `user of ${id}` }),
  change: (_, id) =>
    admin(worker, 'PATCH', `/tenants/${id}`, { name: `Name of ${id}`, aliases: { own: id } }),
  file: (key, id) => new BatchClient(worker, key).upload(lineOf(`line-${id}`)),
  batch: async (key, id) => {
    const client = new BatchClient(worker, key);
    await client.until((await client.start(lineOf(`line-${id}`))).id, 'completed');
  },
  'running batch': async (key, id) => {
    origin.script = async (_, wire) => wire.closed;
    const client = new BatchClient(worker, key);
    const lines = Array.from({ length: 9 }, (_, number) => lineOf(`${number}-${id}`));
    await client.start(lines.join('\n'));
  },
  limits: (_, id) => admin(worker, 'PATCH', `/tenants/${id}`, { limits: { requests_per_minute: 99 } }),
  key: (_, id) => admin(worker, 'POST', '/keys', { tenant: id, name: `key of ${id}`, scopes: ['keys'] }),
};

let count = 0;

/** Creates a tenant, lets it do things, and erases it. Returns the words that name it. */
async function erased(deeds: readonly string[], usage: 'keep' | 'erase'): Promise<string[]> {
  count += 1;
  const id = `gone-${count}-${crypto.randomUUID()}`;
  const { key, keyId } = await tenantWithKey(worker, id, {
    tokens_per_day: 1_000_000,
    user_tokens_per_day: 100_000,
  });
  for (const deed of deeds) {
    // Only the lines of a running batch get no answer.
    origin.reset();
    await DEEDS[deed]!(key, id);
  }
  await admin(worker, 'PATCH', `/tenants/${id}`, { suspended: true });
  const { status } = await admin(worker, 'DELETE', `/tenants/${id}?usage=${usage}`);
  expect(status).toBe(200);
  return [id, keyId];
}

/** What is kept of an erased tenant: bare entries of the audit log, sums, the number of its last report. */
const isKept = (text: string): boolean =>
  / audit \{"id":\d+,.*"address":null,.*"changes":null\}$/.test(text) ||
  /"action":"eraseTenant".*"changes":"\{\\"usage\\":\\"\w+\\"\}"\}$/.test(text) ||
  / usage_summary .*"day":"....-..-01"/.test(text) ||
  / usage_reports \{"tenant_id":"[^"]*","number":\d+\}$/.test(text);

describe('erasing a tenant', () => {
  test('leaves nothing of it in any store but what is documented, and nothing of others is lost', async () => {
    const bystander = await tenantWithKey(worker, 'bystander');
    await DEEDS.completion!(bystander.key, 'bystander');
    await DEEDS.batch!(bystander.key, 'bystander');
    const deeds = fc.shuffledSubarray(Object.keys(DEEDS), { minLength: 1 });
    const usages = fc.constantFrom('keep' as const, 'erase' as const);
    await fc.assert(
      fc.asyncProperty(deeds, usages, async (some, usage) => {
        const words = await erased(some, usage);
        // Late usage of running requests is erased by the daily run.
        const left = await eventually(
          async () => {
            await worker.runScheduled();
            return remains(words).filter((text) => !isKept(text));
          },
          (texts) => texts.length === 0,
        );
        expect(left).toEqual([]);
        if (usage === 'erase')
          expect(remains(words).filter((text) => text.includes(' usage_summary '))).toEqual([]);
      }),
      { numRuns: 6 },
    );
    origin.reset();
    expect((await completion(worker, bystander.key)).status).toBe(200);
    const files = await new BatchClient(worker, bystander.key).call('GET', '/v1/files');
    expect(files.body.data).toHaveLength(2);
    const { body } = await admin(worker, 'GET', '/usage?tenant=bystander&group_by=tenant');
    expect(body.total.requests).toBeGreaterThanOrEqual(2);
  });

  test('keeps exact sums by month and model if it is asked to', async () => {
    const [id] = await erased(['completion', 'completion', 'key'], 'keep');
    await eventually(
      async () => {
        await worker.runScheduled();
        return (await admin(worker, 'GET', `/usage?tenant=${id}&group_by=key&from=2020-01-01`)).body;
      },
      ({ data, total }) => total.requests === 2 && (data[0] as unknown as { key: string }).key === '',
    );
    const { body } = await admin(worker, 'GET', `/usage?tenant=${id}&group_by=key&from=2020-01-01`);
    expect(body.data).toMatchObject([{ key: '', requests: 2, completed: 2, completion_tokens: 8 }]);
    await admin(worker, 'DELETE', `/tenants/${id}?usage=erase`);
    expect((await admin(worker, 'GET', `/usage?tenant=${id}&from=2020-01-01`)).body.data).toEqual([]);
  });

  test('needs a suspended tenant, ends its keys at once, and its id is never used again', async () => {
    const { key } = await tenantWithKey(worker, 'erase-me');
    const early = await admin(worker, 'DELETE', '/tenants/erase-me');
    expect([early.status, early.body.error.code]).toEqual([409, 'conflict']);
    expect((await completion(worker, key)).status).toBe(200);
    await admin(worker, 'PATCH', '/tenants/erase-me', { suspended: true });
    expect((await admin(worker, 'DELETE', '/tenants/erase-me')).body).toMatchObject({ id: 'erase-me' });
    expect((await completion(worker, key)).status).toBe(401);
    expect((await admin(worker, 'GET', '/tenants/erase-me')).status).toBe(404);
    const again = await admin(worker, 'POST', '/tenants', { id: 'erase-me', name: 'x' });
    expect([again.status, again.body.error.param]).toEqual([409, 'id']);
    expect((await admin(worker, 'DELETE', '/tenants/none')).status).toBe(404);
    expect((await admin(worker, 'DELETE', '/tenants/operator')).status).toBe(409);
    const { body } = await admin(worker, 'GET', '/audit?tenant=erase-me');
    const entries = body.data as unknown as { action: string; changes: unknown }[];
    expect(entries.map(({ action, changes }) => [action, changes])).toEqual([
      ['eraseTenant', { usage: 'keep' }],
      ...['changeTenant', 'createKey', 'createTenant'].map((action) => [action, null]),
    ]);
  });

  test('is for owners only', async () => {
    for (const role of ['billing', 'read-only', 'tenant:bystander']) {
      const made = await admin(worker, 'POST', '/keys', {
        tenant: 'operator',
        name: 'r',
        scopes: ['admin'],
        role,
      });
      const refused = await admin(worker, 'DELETE', '/tenants/bystander', undefined, made.body.key);
      expect(refused.status, role).toBe(403);
    }
    expect((await call(ADMIN_KEY, 'GET', '/admin/v1/tenants/bystander')).status).toBe(200);
  });
});
