import { expect, test } from 'vitest';
import type { Env } from '../../worker/env/env.ts';
import { createWorker } from '../../worker/worker.ts';

test('the daily work erases all tenants again and moves old usage, also if some objects fail', async () => {
  const done: string[] = [];
  const database = (answer: (sql: string) => object, ids: readonly string[]) => ({
    prepare: (sql: string) => {
      const run = async () => answer(sql);
      const raw = async () => ids.map((id) => [id]);
      const statement = { bind: () => statement, run, all: run, first: run, raw };
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
      ask: async () => {
        if (id === 'second') throw new Error('busy');
        done.push(`moved ${id}`);
      },
    }),
  };
  const env = {
    ENVIRONMENT: 'development',
    ORIGIN_URL: 'http://origin',
    ORIGIN_SECRET: 's'.repeat(32),
    LIMITER,
    FILES: { list: async () => ({ objects: [], truncated: false }) },
    DB: database(() => ({ results: ['first', 'second'].map((tenant) => ({ tenant, keep: 1 })) }), ['first']),
    USAGE_DB: database(() => ({ results: [] }), ['first', 'second', 'third']),
  } as unknown as Env;
  const scheduled = createWorker().scheduled!;
  await expect(scheduled({} as ScheduledController, env, {} as ExecutionContext)).rejects.toThrow('busy');
  expect(done.toSorted()).toEqual(['erased second', 'moved third']);
});
