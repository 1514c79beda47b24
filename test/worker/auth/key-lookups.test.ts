import type { Miniflare } from 'miniflare';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { sha256Hex } from '../../../shared/signing.ts';
import type { Scope } from '../../../shared/tenant.ts';
import { type Database, migrate } from '../support/database.ts';
import { startWorkerd } from '../support/workerd.ts';
import { keyOf } from './forged-key.ts';

/**
 * Checks that the work per key reveals nothing about a key. Counts work instead of timing it: database statements and
 * hash comparisons, which all take the same time.
 */
const AUTHENTICATION = `
  import { ApiError } from '../shared/errors.ts';
  import { authenticate } from './auth/auth.ts';
  import { KeyDirectory } from './tenants/key-directory.ts';
  import { Timings } from './timers/timings.ts';
  const keys = new KeyDirectory(Date.now);
  export default {
    async fetch(request, env) {
      let statements = 0;
      let comparisons = 0;
      const DB = { prepare: (sql) => { statements += 1; return env.DB.prepare(sql); } };
      const compare = crypto.subtle.timingSafeEqual.bind(crypto.subtle);
      crypto.subtle.timingSafeEqual = (...pair) => { comparisons += 1; return compare(...pair); };
      const context = {
        env: { DB }, settings: { ENVIRONMENT: 'production' }, keys, caller: {}, answer: {}, now: Date.now,
        timings: new Timings(Date.now),
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

const present = async (key: string, scope: Scope = 'completions'): Promise<Work> => {
  const response = await workerd.dispatchFetch(`http://edge/${scope}`, {
    headers: { authorization: `Bearer ${key}` },
  });
  return (await response.json()) as Work;
};

async function store(id: string, expiresAt: number | null, revokedAt: number | null): Promise<void> {
  await db
    .prepare(`
      INSERT INTO keys (id, tenant_id, name, hash, scopes, limits, created_at, expires_at, revoked_at)
      VALUES (?, 'acme', 'k', ?, '["completions"]', '{}', 0, ?, ?)`)
    .bind(id, await sha256Hex(keyOf(id, 1)), expiresAt, revokedAt)
    .run();
}

beforeAll(async () => {
  ({ workerd, db } = await startWorkerd(AUTHENTICATION));
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
  expect([statements, answer]).toEqual([1, expect.arrayContaining([401])]);
  expect(await present(key)).toMatchObject({ statements: 0, answer: 'valid0000000' });
});
