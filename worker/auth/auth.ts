import { apiKeyId } from '../../shared/api-key.ts';
import { ApiError } from '../../shared/errors.ts';
import { sha256Hex } from '../../shared/signing.ts';
import type { Principal, Scope } from '../../shared/tenant.ts';
import type { RequestContext } from '../context.ts';
import { provisionalDialect } from '../dialects/dialect.ts';
import { networkOf } from '../http/client-network.ts';
import { BOOTSTRAP_ADMIN, DEVELOPMENT } from '../tenants/built-in.ts';
import { readKey } from '../tenants/stored-key.ts';
import { flooded, insufficientScope, invalidKey, missingKey, suspended } from './auth-errors.ts';
import { isActive, NO_HASH, sameHash } from './keys.ts';

/**
 * Who is calling.
 * @throws ApiError 401 without a key or with one that is not valid, 403 when the tenant is suspended or the key lacks
 * `scope`, 429 from the flood shield, 503 when keys cannot be looked up
 */
export function authenticate(request: Request, context: RequestContext, scope: Scope): Promise<Principal> {
  return context.timings.measure('auth', () => identify(request, context, scope));
}

async function identify(request: Request, context: RequestContext, scope: Scope): Promise<Principal> {
  const address = request.headers.get('cf-connecting-ip') ?? 'unknown';
  await shield(context.env.FLOOD_BY_ADDRESS, networkOf(address));
  const key = /^bearer +(\S+)$/i.exec(request.headers.get('authorization')?.trim() ?? '')?.[1];
  if (key === undefined) throw missingKey();
  const hash = await sha256Hex(key);
  const principal = builtInPrincipal(hash, context) ?? (await storedPrincipal(key, hash, scope, context));
  context.caller.principal = principal;
  // Whatever refuses the request from here on does so in the caller's dialect; the admin API has none.
  if (scope !== 'admin') context.answer.dialect = provisionalDialect(request, principal.tenant.dialect);
  if (principal.tenant.suspended) throw suspended();
  if (!principal.key.scopes.includes(scope)) throw insufficientScope(scope);
  return principal;
}

async function shield(limit: RateLimit | undefined, key: string): Promise<void> {
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
  scope: Scope,
  context: RequestContext,
): Promise<Principal> {
  const id = apiKeyId(key);
  // A key that cannot exist costs no look-up.
  if (id === null) throw invalidKey();
  // By the whole key: who knows its public id alone must not use up its share.
  await shield(context.env.FLOOD_BY_KEY, hash);
  const read = (wanted: string) => readKey(context.env.DB, wanted);
  // Admin calls pass no limiter, which knows of revocations at once; they are few, so they ask the store itself. What others
  // know stays: anybody may call, with an id that is no secret.
  const looking = scope === 'admin' ? read(id) : context.keys.find(id, read);
  const stored = await looking.catch(unavailable);
  const same = sameHash(hash, stored?.hash ?? NO_HASH);
  if (!stored || !same || !isActive(stored.principal.key, context.now())) throw invalidKey();
  return stored.principal;
}

function unavailable(): never {
  throw new ApiError('server_is_overloaded', 'API keys cannot be checked right now.');
}
