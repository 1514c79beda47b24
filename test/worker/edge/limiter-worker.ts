import type { Miniflare } from 'miniflare';

/** A Worker around the limiter alone: passes calls on to a tenant's object. And one around the ledger. */
export const LIMITER_WORKER = `
  import { addToLedger } from './usage/usage-ledger.ts';
  export { TenantLimiter } from './limiter/tenant-limiter.ts';
  export default {
    async fetch(request, env) {
      const { tenant, method, args } = await request.json();
      if (method === 'addToLedger') return Response.json(await addToLedger(env.DB, tenant, ...args) ?? null);
      const limiter = env.LIMITER.get(env.LIMITER.idFromName(tenant));
      return Response.json(await limiter[method](...args) ?? null);
    },
  };
`;

export interface Call {
  readonly tenant: string;
  readonly method: 'reserve' | 'renew' | 'settle' | 'block' | 'addToLedger';
  readonly args: readonly unknown[];
}

export async function callLimiter(workerd: Miniflare, call: Call): Promise<unknown> {
  const response = await workerd.dispatchFetch('http://limiter/', {
    method: 'POST',
    body: JSON.stringify(call),
  });
  return response.json();
}
