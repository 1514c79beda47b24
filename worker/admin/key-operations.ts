import {
  keyBody,
  keyObject,
  keyPatch,
  keyQuery,
  listOf,
  newKeyObject,
  type pageQuery,
  rotation,
} from '@continuo/shared/account.ts';
import { newApiKey, newCheckedId } from '@continuo/shared/api-key.ts';
import { ApiError } from '@continuo/shared/errors.ts';
import { toCamelCase } from '@continuo/shared/field-names.ts';
import { importSigningKey, sha256Hex } from '@continuo/shared/signing.ts';
import type * as z from 'zod';
import type { RequestContext } from '../http/request-context.ts';
import { limiterOf } from '../limits/limiter-client.ts';
import { OPERATOR_TENANT } from '../tenants/built-in.ts';
import {
  insertKey,
  type KeyRecord,
  listKeys,
  readKeyRecord,
  replaceKey,
  revokeKey,
  updateKey,
} from '../tenants/key-store.ts';
import { readTenant } from '../tenants/tenant-store.ts';
import { retry } from '../timers/retry.ts';
import { found, page, showKey } from './admin-objects.ts';
import { type AdminOperation, operation } from './admin-operation.ts';
import { limitWarning } from './limit-warning.ts';

type KeyTerms = Pick<KeyRecord, 'tenantId' | 'name' | 'scopes' | 'models' | 'limits' | 'expiresAt'>;

/** Creates a key. The whole key is only returned, never stored. */
async function createKey(
  terms: KeyTerms,
  { now, settings: { KEY_ID_SECRET: idSecret } }: RequestContext,
): Promise<{ record: KeyRecord; key: string }> {
  const random = (count: number) => crypto.getRandomValues(new Uint8Array(count));
  const checkedId =
    idSecret === undefined ? undefined : await newCheckedId(random, await importSigningKey(idSecret));
  const { id, secret } = newApiKey(random, checkedId);
  const hash = await sha256Hex(secret);
  return {
    record: { ...terms, id, hash, createdAt: now(), revokedAt: null, disabled: false, replacedBy: null },
    key: secret,
  };
}

/** Keys that manage keys have no other scope; admin keys belong to the operator's tenant. @throws ApiError 400 */
function checkScopes(scopes: readonly string[], tenantId: string): void {
  const admin = scopes.includes('admin');
  const sole = scopes.find((scope) => scope === 'admin' || scope === 'keys');
  if (sole !== undefined && scopes.length > 1) {
    const message = `Invalid 'scopes': '${sole}' cannot be combined with other scopes.`;
    throw new ApiError('conflicting_parameters', message, { param: 'scopes' });
  }
  if (admin !== (tenantId === OPERATOR_TENANT)) {
    const message = `Invalid 'scopes': all keys of the tenant '${OPERATOR_TENANT}', and no others, must have the scope 'admin'.`;
    throw new ApiError('conflicting_parameters', message, { param: 'scopes' });
  }
}

const alreadyExpired = (): ApiError =>
  new ApiError(
    'invalid_value',
    "Invalid 'expires_at': the time is in the past. Send Unix seconds in the future.",
    {
      param: 'expires_at',
    },
  );

const expiryOf = (seconds: number | null, { now }: RequestContext): number | null => {
  if (seconds !== null && seconds * 1000 <= now()) throw alreadyExpired();
  return seconds && seconds * 1000;
};

/** Blocks a key at once, in spite of the Workers' caches; or ends the block. */
async function block({ id, tenantId }: KeyRecord, blocked: boolean, context: RequestContext): Promise<void> {
  await retry(() => limiterOf(context, tenantId).block(id, blocked), context.backoff);
  context.keys.forget(id);
}

/** Returns a key, of any tenant if `tenantId` is null. @throws ApiError 404 */
export async function findKey(
  id: string,
  tenantId: string | null,
  { env }: RequestContext,
): Promise<KeyRecord> {
  const key = await readKeyRecord(env.DB, id);
  return found(tenantId === null || key?.tenantId === tenantId ? key : null, 'key', id);
}

/** Creates a key for a tenant. Returns the only object that shows it. @throws ApiError 400 */
export async function addKey(
  tenantId: string,
  { expires_at, limits, name, scopes, models }: Omit<z.infer<typeof keyBody>, 'tenant'>,
  context: RequestContext,
): Promise<z.infer<typeof newKeyObject>> {
  checkScopes(scopes, tenantId);
  const expiresAt = expiryOf(expires_at, context);
  const terms = { tenantId, name, scopes, models, limits: toCamelCase(limits), expiresAt };
  const { record, key } = await createKey(terms, context);
  await insertKey(context.env.DB, record);
  const warning = await limitWarning(record.id, record.limits, context);
  return { ...showKey(record), key, ...(warning !== undefined && { warning }) };
}

/** Changes a key. It is disabled or enabled at once; the other changes take at most one minute. @throws ApiError 400 */
export async function changeKey(
  old: KeyRecord,
  { expires_at, limits, ...rest }: z.infer<typeof keyPatch>,
  context: RequestContext,
): Promise<z.infer<typeof keyObject>> {
  const expiresAt = expires_at === undefined ? undefined : expiryOf(expires_at, context);
  const changes = { ...rest, expiresAt, limits: limits && toCamelCase(limits) };
  const key = found(await updateKey(context.env.DB, old.id, changes), 'key', old.id);
  if (rest.disabled !== undefined && key.revokedAt === null) await block(key, rest.disabled, context);
  context.keys.forget(key.id);
  return showKey(key);
}

/** Replaces a key by a new one with the same settings. @throws ApiError 409 */
export async function rotateKey(
  old: KeyRecord,
  { overlap_seconds }: z.infer<typeof rotation>,
  context: RequestContext,
): Promise<z.infer<typeof newKeyObject>> {
  const now = context.now();
  const { record, key } = await createKey(old, context);
  const endsAt = Math.min(old.expiresAt ?? Number.POSITIVE_INFINITY, now + overlap_seconds * 1000);
  const expired = (old.expiresAt ?? now + 1) <= now;
  if (expired || !(await replaceKey(context.env.DB, old, record, endsAt))) {
    throw new ApiError('conflict', `The key '${old.id}' is revoked, expired or already replaced.`);
  }
  if (endsAt <= now) await block(old, true, context);
  context.keys.forget(old.id);
  return { ...showKey(record), key };
}

/** Ends a key at once. */
export async function endKey(key: KeyRecord, context: RequestContext): Promise<z.infer<typeof keyObject>> {
  await revokeKey(context.env.DB, key.id, context.now());
  await block(key, true, context);
  return showKey(found(await readKeyRecord(context.env.DB, key.id), 'key', key.id));
}

/** Returns a page of the keys of one tenant, or of all if `tenantId` is null. */
export const keyPage = async (
  tenantId: string | null,
  { after, limit }: z.infer<typeof pageQuery>,
  { env }: RequestContext,
) => page(await listKeys(env.DB, tenantId, after, limit + 1), limit, showKey);

export const KEY_OPERATIONS: readonly AdminOperation[] = [
  operation({
    method: 'GET',
    path: '/keys',
    summary: 'List the keys of all tenants or of one tenant',
    status: 200,
    query: keyQuery,
    response: listOf(keyObject),
    run: ({ query }, context) => keyPage(query.tenant ?? null, query, context),
  }),
  operation({
    method: 'POST',
    path: '/keys',
    summary: 'Create a key; only this response shows it',
    status: 201,
    body: keyBody,
    example: { tenant: 'acme', name: 'web server', scopes: ['completions', 'models'] },
    response: newKeyObject,
    async run({ body }, context) {
      checkScopes(body.scopes, body.tenant);
      if ((await readTenant(context.env.DB, body.tenant)) === null) {
        throw new ApiError('invalid_value', `There is no tenant '${body.tenant}'.`, { param: 'tenant' });
      }
      return addKey(body.tenant, body, context);
    },
  }),
  operation({
    method: 'GET',
    path: '/keys/{id}',
    summary: 'Show a key',
    status: 200,
    response: keyObject,
    run: async ({ id }, context) => showKey(await findKey(id, null, context)),
  }),
  operation({
    method: 'PATCH',
    path: '/keys/{id}',
    summary: 'Change a key without replacing it',
    status: 200,
    body: keyPatch,
    example: { limits: { tokens_per_day: 100_000 }, disabled: false },
    response: keyObject,
    run: async ({ id, body }, context) => changeKey(await findKey(id, null, context), body, context),
  }),
  operation({
    method: 'POST',
    path: '/keys/{id}/rotate',
    summary: 'Replace a key by a new one with the same settings; the old one works until the overlap ends',
    status: 201,
    body: rotation,
    example: { overlap_seconds: 3600 },
    response: newKeyObject,
    run: async ({ id, body }, context) => rotateKey(await findKey(id, null, context), body, context),
  }),
  operation({
    method: 'DELETE',
    path: '/keys/{id}',
    summary:
      'Revoke a key: admin calls are rejected at once, completions within 2 s, all others within one minute',
    status: 200,
    response: keyObject,
    run: async ({ id }, context) => endKey(await findKey(id, null, context), context),
  }),
];
