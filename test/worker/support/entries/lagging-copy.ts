import type { Env } from '../../../../worker/env/env.ts';
import { isolateOf } from '../isolates.ts';
import { turnClock } from './turned-clock.ts';

/**
 * The Worker with a copy of its database that lags. The copy answers each statement as the primary did when a
 * request with the header `x-copy` ran it, and knows nothing else. The header `x-isolate` selects one of
 * several isolates, `x-away` fails the statements that contain its text. GET /reads returns how many reads
 * the copy and the primary have served so far. Tests may turn its clock.
 */
const reads = { copy: 0, primary: 0 };
const copied = new Map<string, readonly unknown[]>();

type All = (sql: string, values: readonly unknown[]) => Promise<D1Result>;

const session = (all: All) => ({
  prepare: (sql: string) => ({
    bind: (...values: readonly unknown[]) => ({ all: () => all(sql, values) }),
    all: () => all(sql, []),
  }),
});

function lagging(db: D1Database, { headers }: Request): D1Database {
  const away = headers.get('x-away');
  const isAway = (sql: string) => away !== null && sql.includes(away);
  const primary: All = (sql, values) => {
    if (isAway(sql)) return Promise.reject(new Error('away'));
    reads.primary += 1;
    return db
      .prepare(sql)
      .bind(...values)
      .all();
  };
  const copy: All = async (sql, values) => {
    if (isAway(sql)) throw new Error('away');
    reads.copy += 1;
    const statement = JSON.stringify([sql, values]);
    const { results, ...answer } = await db
      .prepare(sql)
      .bind(...values)
      .all();
    if (headers.has('x-copy')) copied.set(statement, results);
    const known = [...(copied.get(statement) ?? [])];
    return { ...answer, results: known, meta: { ...answer.meta, served_by_primary: false } };
  };
  return {
    prepare: (sql: string) => db.prepare(sql),
    batch: (statements: D1PreparedStatement[]) => db.batch(statements),
    withSession: (kind: string) => session(kind === 'first-primary' ? primary : copy),
  } as unknown as D1Database;
}

export default {
  fetch(request, env, context) {
    turnClock(request);
    if (new URL(request.url).pathname === '/reads') return Response.json(reads);
    return isolateOf(request).fetch!(request, { ...env, DB: lagging(env.DB, request) }, context);
  },
} satisfies ExportedHandler<Env>;

export { BatchRun, IdempotentAnswer, StreamTail, TenantLimiter } from '../../../../worker/index.ts';
