import { randomBytes } from 'node:crypto';
import type { Miniflare } from 'miniflare';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { newCheckedId } from '../../../shared/api-key.ts';
import { importSigningKey, sha256Hex } from '../../../shared/signing.ts';
import type { Scope } from '../../../shared/tenant.ts';
import type { Block } from '../../../worker/limits/quota/protocol.ts';
import { type Database, migrate } from '../support/database.ts';
import { startWorkerd } from '../support/workerd.ts';
import { WorkerdLog } from '../support/workerd-log.ts';
import { keyOf } from './forged-key.ts';

const ID_SECRET = 'a secret of the tests, 32 bytes at least';

/**
 * Checks that the work per key reveals nothing about a key. Counts work instead of timing it: database
 * statements and hash comparisons, which all take the same time.
 */
const AUTHENTICATION = `
  import { ApiError } from '../shared/errors.ts';
  import { authenticate } from './auth/auth.ts';
  import { KeyDirectory } from './tenants/key-directory.ts';
  import { RequestTimers } from './timers/request-timers.ts';
  import { Timings } from './timers/timings.ts';
  let now = 0;
  const keys = new KeyDirectory(() => now, { secret: '${ID_SECRET}', acceptUnchecked: true });
  const strict = new KeyDirectory(() => now, { secret: '${ID_SECRET}', acceptUnchecked: false });
  export default {
    async fetch(request, env) {
      let statements = 0;
      let comparisons = 0;
      const { minutes, db, block, unchecked } = Object.fromEntries(request.headers);
      now = Number(minutes ?? 0) * 60_000;
      const failures = { fails: Promise.reject(new Error('down')), hangs: new Promise(() => {}) };
      failures.fails.catch(() => {});
      const DB = {
        prepare: (sql) => {
          statements += 1;
          return db ? { bind: () => ({ all: () => failures[db] }) } : env.DB.prepare(sql);
        },
      };
      DB.withSession = () => DB;
      const blockOf = () => block === 'hangs' ? new Promise(() => {}) : Promise.resolve(block ?? null);
      const LIMITER = { idFromName: (name) => name, get: () => ({ blockOf }) };
      const compare = crypto.subtle.timingSafeEqual.bind(crypto.subtle);
      crypto.subtle.timingSafeEqual = (...pair) => { comparisons += 1; return compare(...pair); };
      const context = {
        env: { DB, LIMITER }, settings: { ENVIRONMENT: 'production' }, keys: unchecked ? strict : keys,
        caller: {}, batchKey: null, reply: {}, now: Date.now, backoff: { random: () => 0, pause: async () => {} },
        timings: new Timings(Date.now), timers: new RequestTimers(Date.now), waitUntil: () => {},
      };
      const answer = await authenticate(request, context, new URL(request.url).pathname.slice(1)).then(
        ({ key }) => key.id,
        (error) => error instanceof ApiError ? [error.status, error.headers, error.envelope()] : String(error),
      );
      delete crypto.subtle.timingSafeEqual;
      return Response.json({ statements, comparisons, answer });
    },
  };
`;

interface Work {
  readonly statements: number;
  readonly comparisons: number;
  readonly answer: unknown;
}

let workerd: Miniflare;
let db: Database;
const log = new WorkerdLog(/"event":"key_store_failed"/);

/** Each look-up that fails is logged. Returns what is to be called after `failures` of them. */
function expectLoggedFailures(): (failures: number) => Promise<void> {
  const before = log.lines.length;
  return (failures) => expect.poll(() => log.lines.length - before).toBe(failures);
}

/** `minutes` = the time; `db` = how the database fails; `block` = what the limiter knows of the key. */
interface World {
  readonly minutes?: string;
  readonly db?: 'fails' | 'hangs';
  readonly block?: Block | 'hangs';
  /** `refused`: ids without a keyed check are. */
  readonly unchecked?: 'refused';
}

const present = async (key: string, scope: Scope = 'completions', world: World = {}): Promise<Work> => {
  const response = await workerd.dispatchFetch(`http://edge/${scope}`, {
    headers: { ...world, authorization: `Bearer ${key}` },
  });
  return (await response.json()) as Work;
};

/** An id with a right check that is not stored. */
let checkedId: string;

async function store(id: string, expiresAt: number | null, revokedAt: number | null): Promise<void> {
  await db
    .prepare(`
      INSERT INTO keys (id, tenant_id, name, hash, scopes, limits, created_at, expires_at, revoked_at)
      VALUES (?, 'acme', 'k', ?, '["completions"]', '{}', 0, ?, ?)`)
    .bind(id, await sha256Hex(keyOf(id, 1)), expiresAt, revokedAt)
    .run();
}

beforeAll(async () => {
  ({ workerd, db } = await startWorkerd(AUTHENTICATION, {}, undefined, {}, log));
  checkedId = await newCheckedId(randomBytes, await importSigningKey(ID_SECRET));
  await migrate(db);
  await db
    .prepare("INSERT INTO tenants (id, name, dialect, created_at) VALUES ('acme', 'Acme', 'openai', 0)")
    .run();
  await store('valid0000000', null, null);
  await store('expired00000', 1, null);
  await store('revoked00000', null, 1);
});
afterAll(() => workerd?.dispose());

const mistyped = keyOf('valid0000000', 1).replace(/.$/, (digit) => (digit === '0' ? '1' : '0'));

/** [kind, key, statements of the first request, statements of the second request]. */
const KINDS = [
  ['malformed', 'sk-nonsense', 0, 0],
  ['mistyped', mistyped, 0, 0],
  ['unknown', keyOf('unknown00000', 1), 1, 0],
  ['expired', keyOf('expired00000', 1), 1, 0],
  ['revoked', keyOf('revoked00000', 1), 1, 0],
  ['wrong', keyOf('valid0000000', 2), 1, 0],
] as const;

test.each(KINDS)(
  'looks up a key that is %s at most once, and not again for the next request',
  async (_, key, once, again) => {
    expect((await present(key)).statements).toBe(once);
    expect((await present(key)).statements).toBe(again);
  },
);

test('compares every looked-up key exactly once, found or not', async () => {
  const valid = await present(keyOf('valid0000000', 1));
  expect(valid.answer).toBe('valid0000000');
  for (const [kind, key, once] of KINDS) {
    expect((await present(key)).comparisons, kind).toBe(once === 0 ? 0 : valid.comparisons);
  }
  expect(valid.comparisons).toBe(1);
});

test('answers all kinds of invalid keys with the same response', async () => {
  const answers = await Promise.all(KINDS.map(async ([, key]) => (await present(key)).answer));
  expect(answers[0]).toMatchObject([401, {}, { error: { code: 'invalid_api_key' } }]);
  expect(new Set(answers.map((answer) => JSON.stringify(answer))).size).toBe(1);
});

test('keeps a cached key when a caller sends its public id to the admin API', async () => {
  const [key, forged] = [keyOf('valid0000000', 1), keyOf('valid0000000', 2)];
  await present(key);
  const { statements, answer } = await present(forged, 'admin');
  expect([statements, answer]).toEqual([0, expect.arrayContaining([401])]);
  expect(await present(key)).toMatchObject({ statements: 0, answer: 'valid0000000' });
});

test('looks up no key whose id has a wrong check', async () => {
  const wrong = checkedId.replace(/.$/, (digit) => (digit === '0' ? '1' : '0'));
  const { statements, answer } = await present(keyOf(wrong, 1));
  expect([statements, answer]).toEqual([0, (await present('sk-nonsense')).answer]);
  expect((await present(keyOf(checkedId, 1))).statements).toBe(1);
});

test('looks up no key without a check in its id if such keys are refused', async () => {
  const { statements, answer } = await present(keyOf('valid0000000', 1), 'completions', {
    unchecked: 'refused',
  });
  expect([statements, answer]).toEqual([0, expect.arrayContaining([401])]);
});

test('accepts a cached key for 30 minutes if the store fails, unless the limiter has blocked it', async () => {
  await store('outage000000', null, null);
  const key = keyOf('outage000000', 1);
  await present(key);
  const logged = expectLoggedFailures();
  const at = (minutes: number, more: World = {}) =>
    present(key, 'completions', { minutes: String(minutes), db: 'fails', ...more });
  expect((await at(2)).answer).toBe('outage000000');
  expect((await at(29)).answer).toBe('outage000000');
  expect((await at(29, { block: 'revoked' })).answer).toEqual(expect.arrayContaining([401]));
  expect((await at(29, { block: 'suspended' })).answer).toEqual(expect.arrayContaining([403]));
  expect((await at(31)).answer).toEqual(expect.arrayContaining([503]));
  await logged(3);
});

test('accepts a cached key if the store does not answer', async () => {
  await store('silence00000', null, null);
  const key = keyOf('silence00000', 1);
  await present(key);
  const logged = expectLoggedFailures();
  expect((await present(key, 'completions', { minutes: '2', db: 'hangs' })).answer).toBe('silence00000');
  await logged(1);
});

test('rejects an admin call at once if the limiter knows that the key is revoked', async () => {
  await db
    .prepare(`
      INSERT INTO keys (id, tenant_id, name, hash, scopes, limits, created_at)
      VALUES ('admin0000000', 'acme', 'k', ?, '["admin"]', '{}', 0)`)
    .bind(await sha256Hex(keyOf('admin0000000', 1)))
    .run();
  const key = keyOf('admin0000000', 1);
  expect((await present(key, 'admin')).answer).toBe('admin0000000');
  expect(await present(key, 'admin')).toMatchObject({ statements: 0, answer: 'admin0000000' });
  expect((await present(key, 'admin', { block: 'revoked' })).answer).toEqual(expect.arrayContaining([401]));
});

test('rejects an admin call if the limiter does not answer', async () => {
  await store('hanging00000', null, null);
  await db.prepare(`UPDATE keys SET scopes = '["admin"]' WHERE id = 'hanging00000'`).run();
  const { answer } = await present(keyOf('hanging00000', 1), 'admin', { block: 'hangs' });
  expect(answer).toEqual(expect.arrayContaining([503]));
});
