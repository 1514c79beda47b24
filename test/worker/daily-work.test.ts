import { expect, test } from 'vitest';
import type { Env } from '../../worker/env/env.ts';
import { createWorker } from '../../worker/worker.ts';

test('the daily work erases all tenants again and deletes old records, also if the ledger cannot be rolled up', async () => {
  const done: string[] = [];
  const database = (answer: (sql: string) => object) => ({
    prepare: (sql: string) => {
      const run = async () => answer(sql);
      const statement = { bind: () => statement, run, all: run, first: run };
      return statement;
    },
    batch: async () => [],
  });
  const LIMITER = {
    idFromName: (name: string) => name,
    get: (id: string) => ({
      erase: async () => {
        if (id === 'first') throw Object.assign(new Error('busy'), { overloaded: true });
        done.push(`erased ${id}`);
      },
    }),
  };
  const env = {
    ENVIRONMENT: 'development',
    ORIGIN_URL: 'http://origin',
    ORIGIN_SECRET: 's'.repeat(32),
    LIMITER,
    FILES: { list: async () => ({ objects: [], truncated: false }) },
    DB: database(() => ({ results: ['first', 'second'].map((tenant) => ({ tenant, keep: 1 })) })),
    USAGE_DB: database((sql) => {
      if (sql.includes('usage_daily')) throw new Error('no such table');
      done.push('deleted records');
      return { meta: { changes: 0 } };
    }),
  } as unknown as Env;
  const scheduled = createWorker().scheduled!;
  await expect(scheduled({} as ScheduledController, env, {} as ExecutionContext)).rejects.toThrow('busy');
  expect(done.toSorted()).toEqual(['deleted records', 'erased second']);
});
