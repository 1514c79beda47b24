import type { Miniflare } from 'miniflare';

/**
 * A Worker with only the home limiter and the ledger. It forwards calls to a tenant's object, can restart it, and reports
 * the number of alarms, the next alarm and the number of records in the outbox.
 */
export const LIMITER_WORKER = `
  import { addToLedger } from './usage/usage-ledger.ts';
  import { TenantLimiter as Limiter } from './limits/objects/tenant-limiter.ts';
  export class TenantLimiter extends Limiter {
    #alarms = 0;
    async alarm() {
      this.#alarms += 1;
      await super.alarm();
    }
    async state() {
      const outbox = this.ctx.storage.sql.exec('SELECT 1 FROM outbox').toArray();
      return { alarms: this.#alarms, next: await this.ctx.storage.getAlarm(), outbox: outbox.length };
    }
    async restart() {
      this.ctx.abort('restarted');
    }
  }
  export default {
    async fetch(request, env) {
      const { tenant, method, args } = await request.json();
      if (method === 'addToLedger') return Response.json(await addToLedger(env.DB, tenant, ...args) ?? null);
      const limiter = env.LIMITER.get(env.LIMITER.idFromName(tenant));
      if (method === 'restart') return Response.json(await limiter.restart().catch(() => null));
      return Response.json(await limiter[method](...args) ?? null);
    },
  };
`;

export interface Call {
  readonly tenant: string;
  readonly method: 'reserve' | 'renew' | 'settle' | 'block' | 'blockOf' | 'restart' | 'state' | 'addToLedger';
  readonly args: readonly unknown[];
}

export async function callLimiter(workerd: Miniflare, call: Call): Promise<unknown> {
  const response = await workerd.dispatchFetch('http://limiter/', {
    method: 'POST',
    body: JSON.stringify(call),
  });
  return response.json();
}
