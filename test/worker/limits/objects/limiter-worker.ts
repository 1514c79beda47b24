import type { Miniflare } from 'miniflare';

/**
 * A Worker with only the objects of tenants. It forwards calls to one of them, can restart it, and reports
 * the milliseconds to the next alarm and the sums of its ledger. Each call comes from an isolate of its own.
 *
 * `settle` returns how many requests were open before, `renew` whether the reservation still runs.
 *
 * `pass` lets time pass and the alarm ring. From then on, the clock stands between these calls.
 */
export const LIMITER_WORKER = `
  const callOf = (settlements, more) => ({
    isolate: crypto.randomUUID(),
    number: 1,
    first: 1,
    decisions: settlements.map((settlement) => ({ ...settlement, kind: 'settled', refund: null })),
    renewals: [],
    reservation: null,
    sliceRequests: [],
    ...more,
  });
  import { TenantLedger } from './limits/usage/tenant-ledger.ts';
  import { LimiterStorage } from './limits/objects/limiter-storage.ts';
  import { TenantLimiter as Limiter } from './tenant-limiter.ts';
  export class TenantLimiter extends Limiter {
    #open(ids) {
      const { sql } = this.ctx.storage;
      const { open } = new LimiterStorage(sql, new TenantLedger(sql), () => null);
      return ids.flatMap((id) => open.get(id) ?? []);
    }
    async reserve(reservation, settlements) {
      return (await this.exchange(callOf(settlements, { reservation }))).reservation;
    }
    async settle(settlements) {
      const open = this.#open(settlements.map(({ requestId }) => requestId));
      await this.exchange(callOf(settlements, {}));
      return open.length;
    }
    async renew(requestId, renewal) {
      await this.exchange(callOf([], { renewals: [{ requestId, ...renewal }] }));
      return this.#open([requestId]).some(({ abandonAt }) => abandonAt === null);
    }
    async pass(ms) {
      const now = Date.now() + ms;
      Date.now = () => now;
      await this.alarm();
    }
    async next() {
      return (await this.ctx.storage.getAlarm()) - Date.now();
    }
    async sums(tenantId) {
      await this.ask({ kind: 'lastUses', tenantId, keyIds: [] });
      return this.ctx.storage.sql.exec('SELECT * FROM sums').toArray();
    }
    async query(sql) {
      return this.ctx.storage.sql.exec(sql).toArray();
    }
    async restart() {
      this.ctx.abort('restarted');
    }
  }
  export default {
    async fetch(request, env) {
      const { tenant, method, args } = await request.json();
      const limiter = env.LIMITER.get(env.LIMITER.idFromName(tenant));
      if (method === 'restart') return Response.json(await limiter.restart().catch(() => null));
      return Response.json(await limiter[method](...args) ?? null);
    },
  };
`;

export interface Call {
  readonly tenant: string;
  readonly method:
    | 'reserve'
    | 'renew'
    | 'settle'
    | 'block'
    | 'blockOf'
    | 'pass'
    | 'restart'
    | 'next'
    | 'ask'
    | 'erase'
    | 'sums'
    | 'query';
  readonly args: readonly unknown[];
}

export async function callLimiter(workerd: Miniflare, call: Call): Promise<unknown> {
  const response = await workerd.dispatchFetch('http://limiter/', {
    method: 'POST',
    body: JSON.stringify(call),
  });
  if (!response.ok) throw new Error(await response.text());
  return response.json();
}
