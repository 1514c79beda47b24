import { type Backoff, retry } from '@continuo/shared/retry.ts';
import { type After, requireInTime } from '@continuo/shared/time-limit.ts';
import type { TenantLimiterRpc, TenantQuestion, TenantReplies } from './tenant-rpc.ts';

/** What calls of limiters need of the request that makes them. */
export interface LimiterCaller {
  readonly requestId: string;
  readonly env: { readonly LIMITER: DurableObjectNamespace<TenantLimiterRpc> };
  readonly timers: { readonly after: After };
  readonly backoff: Backoff;
  /** Unix milliseconds. */
  now(): number;
  /** Returns `count` random bytes as lower-case hex. */
  randomHex(count: number): string;
  /** Keeps work running after the response is sent. */
  waitUntil(work: Promise<unknown>): void;
}

/** A call without an answer has failed after this time: a request must not wait for a limiter that hangs. */
const CALL_WITHIN_MS = 10_000;

/** Calls a tenant's object. @throws what the call throws, or an Error if it hangs */
export async function callObject<T>(
  { env, timers }: Pick<LimiterCaller, 'env' | 'timers'>,
  tenantId: string,
  call: (object: DurableObjectStub<TenantLimiterRpc>) => Promise<T>,
): Promise<T> {
  // Each call gets its own stub, because a restarted limiter breaks its stubs.
  const object = env.LIMITER.get(env.LIMITER.idFromName(tenantId));
  return requireInTime(call(object), { after: timers.after, ms: CALL_WITHIN_MS });
}

/** Asks a tenant's object. @throws what the call throws */
export async function askTenant<Kind extends TenantQuestion['kind']>(
  context: Parameters<typeof callObject>[0],
  tenantId: string,
  question: Extract<TenantQuestion, { readonly kind: Kind }>,
): Promise<TenantReplies[Kind]> {
  const reply: unknown = await callObject<unknown>(context, tenantId, (object) => object.ask(question));
  // The kind of the question decides, which the types of remote calls cannot say.
  return reply as TenantReplies[Kind];
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
  context: Parameters<typeof callObject>[0] & Pick<LimiterCaller, 'backoff'>,
): Promise<void> {
  for (let told: boolean | null = null; ; ) {
    const blocked = await read();
    if (blocked === null || blocked === told) return;
    await retry(
      () => callObject(context, tenantId, (object) => object.block(keyId, blocked)),
      context.backoff,
    );
    told = blocked;
  }
}
