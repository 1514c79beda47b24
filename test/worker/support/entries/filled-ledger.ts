import type { Env } from '../../../../worker/env/env.ts';
import worker, { TenantLimiter as Limiter } from '../../../../worker/index.ts';
import { Table } from '../../../../worker/limits/usage/object-tables.ts';
import { ALL_SUMS, type Counters, DAY_MS, dayName } from '../../../../worker/limits/usage/usage-sums.ts';

/** The Worker. POST /fill gives the tenant `bench` a year of usage: 100 keys, 4 models, 100 end users. */

const DAYS = 365;
const KEYS = 100;
const MODELS = 4;

/** Counters of plausible sizes, most of them small. */
function countersOf(day: number, key: number): Counters {
  const requests = 1 + ((day * 31 + key * 7) % 997);
  const values = [requests, requests - 1, 1, 0, 0, requests - 3, 2, requests * 211, requests * 64];
  const more = [requests * 97, requests * 1_931, requests * 420, requests * 38, requests - 1];
  return Object.fromEntries(ALL_SUMS.map((name, at) => [name, [...values, ...more][at]!])) as Counters;
}

export class TenantLimiter extends Limiter {
  async fill(): Promise<void> {
    const { sql } = this.ctx.storage;
    const [sums, users] = [new Table(sql, 'sums'), new Table(sql, 'user_sums')];
    for (let day = 0; day < DAYS; day += 1)
      for (let key = 0; key < KEYS; key += 1) {
        const named = { day: dayName(Date.now() - day * DAY_MS), model: `model-${(day + key) % MODELS}` };
        const row = { ...named, key_id: `key_${String(key).padStart(20, '0')}`, ...countersOf(day, key) };
        sums.put(row);
        users.put({ ...row, end_user: String(key).padStart(64, '0') });
      }
  }
}

export default {
  async fetch(request, env, context) {
    if (new URL(request.url).pathname !== '/fill') return worker.fetch!(request, env, context);
    const object = env.LIMITER.get(env.LIMITER.idFromName('bench')) as unknown as { fill(): Promise<void> };
    await object.fill();
    return new Response();
  },
} satisfies ExportedHandler<Env>;

export { BatchRun, IdempotentAnswer, StreamTail } from '../../../../worker/index.ts';
