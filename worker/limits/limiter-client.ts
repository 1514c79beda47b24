import type { TenantLimiterRpc } from '../env/limiter-protocol.ts';
import type { LimiterCaller } from '../http/request-context.ts';
import type { After } from '../timers/request-timers.ts';
import { retry } from '../timers/retry.ts';
import { requireInTime } from '../timers/time-limit.ts';

/** A call without an answer has failed after this time: a request must not wait for a limiter that hangs. */
const CALL_WITHIN_MS = 10_000;

/** Calls a tenant's home limiter. @throws what the call throws, or an Error if it hangs */
export async function callHome<T>(
  { env, timers }: { readonly env: LimiterCaller['env']; readonly timers: { readonly after: After } },
  tenantId: string,
  call: (home: DurableObjectStub<TenantLimiterRpc>) => Promise<T>,
): Promise<T> {
  // Each call gets its own stub, because a restarted limiter breaks its stubs.
  const home = env.LIMITER.get(env.LIMITER.idFromName(tenantId));
  return requireInTime(call(home), { after: timers.after, ms: CALL_WITHIN_MS });
}

/**
 * Tells a tenant's limiter whether one of its keys is blocked, or the tenant if `keyId` is null. It repeats
 * this until the limiter has what the database says: of two concurrent changes, the one stored first may
 * reach the limiter last.
 * @param read reads it from the database; null = there is no such record
 */
export async function syncBlock(
  { tenantId, keyId }: { readonly tenantId: string; readonly keyId: string | null },
  read: () => Promise<boolean | null>,
  context: Parameters<typeof callHome>[0] & Pick<LimiterCaller, 'backoff'>,
): Promise<void> {
  for (let told: boolean | null = null; ; ) {
    const blocked = await read();
    if (blocked === null || blocked === told) return;
    await retry(() => callHome(context, tenantId, (home) => home.block(keyId, blocked)), context.backoff);
    told = blocked;
  }
}
