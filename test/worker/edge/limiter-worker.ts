import type { Miniflare } from 'miniflare';

/** A Worker around the limiter alone: passes calls on to a tenant's object, which can restart. And one around the ledger. */
export const LIMITER_WORKER = `
  import { addToLedger } from './usage/usage-ledger.ts';
  import { TenantLimiter as Limiter } from './limiter/tenant-limiter.ts';
  export class TenantLimiter extends Limiter {
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
  readonly method: 'reserve' | 'renew' | 'settle' | 'block' | 'restart' | 'addToLedger';
  readonly args: readonly unknown[];
}

export async function callLimiter(workerd: Miniflare, call: Call): Promise<unknown> {
  const response = await workerd.dispatchFetch('http://limiter/', {
    method: 'POST',
    body: JSON.stringify(call),
  });
  return response.json();
}
