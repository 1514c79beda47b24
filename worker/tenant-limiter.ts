import type { LimiterPorts } from '@continuo/limits/objects/limiter-ports.ts';
import { TenantObject } from '@continuo/limits/objects/tenant-object.ts';
import { deliver } from './delivery/event-delivery.ts';
import type { Env } from './env/env.ts';
import { parseSettings } from './env/settings.ts';
import { UsageInquiry } from './upstreams/usage-inquiry.ts';

/** What a tenant's object uses of the Worker: its settings, databases, upstreams and endpoints of others. */
function portsOf(env: Env): LimiterPorts {
  const settings = parseSettings(env);
  const inquiry = new UsageInquiry(env);
  return {
    settings,
    db: env.DB,
    oldDb: env.USAGE_DB,
    points: env.USAGE,
    deliver: (channel, events, now) => deliver(channel, events, { env, settings, now }),
    accountsUnder: (prefix) => inquiry.accountsUnder(prefix),
    usageOf: (account, upstream) => inquiry.usageOf(account, upstream),
  };
}

/** The class of the binding `LIMITER`: one object per tenant. */
export class TenantLimiter extends TenantObject<Env> {
  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env, portsOf(env));
  }
}
