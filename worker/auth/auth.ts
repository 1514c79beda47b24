import { apiKeyId } from '@continuo/shared/api-key.ts';
import { ApiError } from '@continuo/shared/errors.ts';
import { invalidKey, suspended } from '@continuo/shared/key-errors.ts';
import { retry } from '@continuo/shared/retry.ts';
import { sha256Hex } from '@continuo/shared/signing.ts';
import { type ApiKey, isActive, type Principal, type Scope } from '@continuo/shared/tenant.ts';
import { requireInTime } from '@continuo/shared/time-limit.ts';
import ipaddr from 'ipaddr.js';
import { provisionalDialect } from '../dialects/dialect.ts';
import type { RequestContext } from '../http/request-context.ts';
import { isWithin } from '../tenants/address-ranges.ts';
import { BOOTSTRAP_ADMIN, DEVELOPMENT } from '../tenants/built-in.ts';
import { type KeyReading, readKey, type StoredKey } from '../tenants/stored-key.ts';
import { addressNotAllowed, flooded, insufficientScope, missingKey } from './auth-errors.ts';

/**
 * Returns the tenant and key of the caller.
 * @param scope null = any
 * @throws ApiError 401 without a valid key; 403 if the tenant is suspended or the key lacks `scope`; 429 from
 *   flood limits; 503 if the key store is unavailable
 */
export function authenticate(
  request: Request,
  context: RequestContext,
  scope: Scope | null,
): Promise<Principal> {
  return context.timings.measure('auth', () => identify(request, context, scope));
}

async function identify(request: Request, context: RequestContext, scope: Scope | null): Promise<Principal> {
  const principal =
    context.batchKey === null
      ? await presentedPrincipal(request, context, scope)
      : await batchPrincipal(context.batchKey, scope, context);
  context.caller.principal = principal;
  // A batch was created from an allowed address.
  if (context.batchKey === null) checkAddress(request, principal.key);
  // Errors from here on use the tenant's dialect. The admin API has no dialects.
  if (scope !== 'admin') context.reply.dialect = provisionalDialect(request, principal.tenant.dialect);
  if (principal.tenant.suspended) throw suspended();
  if (scope !== null && !principal.key.scopes.includes(scope)) throw insufficientScope(scope);
  return principal;
}

/** @throws ApiError 403 */
function checkAddress({ headers }: Request, { allowedAddresses }: ApiKey): void {
  if (allowedAddresses === null || isWithin(addressOf(headers), allowedAddresses)) return;
  throw addressNotAllowed();
}

const addressOf = (headers: Headers): string => headers.get('cf-connecting-ip') ?? 'unknown';

async function presentedPrincipal(
  request: Request,
  context: RequestContext,
  scope: Scope | null,
): Promise<Principal> {
  await checkFlood(context.env.FLOOD_BY_ADDRESS, networkOf(addressOf(request.headers)));
  const key = keyOf(request);
  if (key === null) throw missingKey();
  const hash = context.keys.hashOf(key) ?? (await sha256Hex(key));
  const principal = builtInPrincipal(hash, context) ?? (await storedPrincipal(key, hash, scope, context));
  context.keys.keepHash(key, hash);
  return principal;
}

/** The key that created a batch, as it is now. Only the batch's object names it, without secret. */
async function batchPrincipal(id: string, scope: Scope | null, context: RequestContext): Promise<Principal> {
  if (id === DEVELOPMENT.key.id && context.settings.ENVIRONMENT === 'development') return DEVELOPMENT;
  const { key, stale } = await findKey(id, context);
  return activePrincipal(key, stale, scope, context);
}

/** Returns the key that a request carries: as Bearer token or in other APIs' headers; null without a key. */
function keyOf({ headers }: Request): string | null {
  const bearer = /^bearer +(\S+)$/i.exec(headers.get('authorization')?.trim() ?? '')?.[1];
  return bearer ?? (headers.get('x-api-key')?.trim() || headers.get('api-key')?.trim() || null);
}

async function checkFlood(limit: RateLimit | undefined, key: string): Promise<void> {
  if (limit && !(await limit.limit({ key })).success) throw flooded();
}

function builtInPrincipal(hash: string, { settings }: RequestContext): Principal | null {
  const { ADMIN_KEY_SHA256, DEVELOPMENT_KEY_SHA256, ENVIRONMENT } = settings;
  if (ADMIN_KEY_SHA256 !== undefined && sameHash(hash, ADMIN_KEY_SHA256)) return BOOTSTRAP_ADMIN;
  const development = ENVIRONMENT === 'development' ? DEVELOPMENT_KEY_SHA256 : undefined;
  return development !== undefined && sameHash(hash, development) ? DEVELOPMENT : null;
}

async function storedPrincipal(
  key: string,
  hash: string,
  scope: Scope | null,
  context: RequestContext,
): Promise<Principal> {
  const id = apiKeyId(key);
  // Malformed keys are rejected without a look-up.
  if (id === null) throw invalidKey();
  // Counted by the hash of the whole key: a caller who knows only the public id must not use up the key's
  // share.
  await checkFlood(context.env.FLOOD_BY_KEY, hash);
  const { key: stored, stale } = await findKey(id, context);
  const same = sameHash(hash, stored?.hash ?? NO_HASH);
  return activePrincipal(same ? stored : null, stale, scope, context);
}

async function activePrincipal(
  stored: StoredKey | null,
  stale: boolean,
  scope: Scope | null,
  context: RequestContext,
): Promise<Principal> {
  if (!stored || !isActive(stored.principal.key, context.now())) throw invalidKey();
  // The limiter knows revocations at once. Completions ask it in any case, at admission.
  if (stale || scope === 'admin' || scope === 'keys') await checkRevocation(stored.principal, context);
  return stored.principal;
}

/** Returns the caller as the database has it now: limits and keys may change while it runs. */
export async function currentPrincipal(caller: Principal, context: RequestContext): Promise<Principal> {
  const result = await findKey(caller.key.id, context).catch(() => null);
  return result?.key?.principal ?? caller;
}

function unavailable(): never {
  throw new ApiError('server_is_overloaded', 'API keys cannot be checked right now. Retry the request.');
}

/** A key store or a limiter that takes longer counts as failed. */
const READ_WITHIN_MS = 5_000;

/** @throws ApiError 503 if the key store is unavailable */
async function findKey(id: string, context: RequestContext) {
  const lookup = await context.keys.find(id, keyReader(context)).catch(unavailable);
  const principal = lookup.fromCopy && lookup.key?.principal;
  if (principal && isActive(principal.key, context.now()) && !principal.tenant.suspended)
    context.waitUntil(forgetIfBlocked(principal, context));
  return lookup;
}

/**
 * Forgets a key that a copy of the database has shown as valid, if the limiter blocks it: so a copy that lags
 * cannot give a revoked key another minute. If the limiter fails, the key stays for that minute.
 */
async function forgetIfBlocked(principal: Principal, context: RequestContext): Promise<void> {
  const block = await blockOf(principal, context).catch(() => null);
  if (block !== null) context.keys.forget(principal.key.id);
}

/** Returns the function that reads the key store. It logs a failed read, which an outdated key may hide. */
function keyReader({ env, timers, requestId }: RequestContext) {
  return async (id: string, session: D1SessionConstraint): Promise<KeyReading> => {
    try {
      const reading = readKey(env.DB, id, session);
      return await requireInTime(reading, { after: timers.after, ms: READ_WITHIN_MS });
    } catch (thrown) {
      console.error(JSON.stringify({ event: 'key_store_failed', requestId }));
      throw thrown;
    }
  };
}

/** @throws ApiError 401 if the limiter blocks the key, 403 if the tenant, 503 if it is unreachable */
async function checkRevocation(principal: Principal, context: RequestContext): Promise<void> {
  const block = await blockOf(principal, context).catch(unavailable);
  if (block === 'revoked') throw invalidKey();
  if (block === 'suspended') throw suspended();
}

/** @throws Error if the limiter fails or is slow */
function blockOf({ tenant, key }: Principal, { env, backoff, timers }: RequestContext) {
  const ask = async () => await env.LIMITER.get(env.LIMITER.idFromName(tenant.id)).blockOf(key.id);
  return requireInTime(retry(ask, backoff), { after: timers.after, ms: READ_WITHIN_MS });
}

const encoder = new TextEncoder();

/** Compares two hashes in constant time. */
function sameHash(left: string, right: string): boolean {
  const [first, second] = [encoder.encode(left), encoder.encode(right)];
  return first.byteLength === second.byteLength && crypto.subtle.timingSafeEqual(first, second);
}

/** Unknown keys are compared with this hash, so that they take as long as known keys. */
const NO_HASH = '0'.repeat(64);

/**
 * Returns the network that an address is rate-limited by: the address itself for IPv4, the /64 prefix for
 * IPv6. A customer of a network has at least 2^64 IPv6 addresses.
 */
export function networkOf(address: string): string {
  if (address.includes('.') || !ipaddr.IPv6.isValid(address)) return address;
  return ipaddr.IPv6.parse(address).parts.slice(0, 4).join(':');
}
