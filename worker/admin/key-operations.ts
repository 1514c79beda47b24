import { askTenant, syncBlock } from '@continuo/limits/limiter-client.ts';
import { listOf, type pageQuery } from '@continuo/shared/account-fields.ts';
import { newApiKey, newCheckedId } from '@continuo/shared/api-key.ts';
import { ApiError } from '@continuo/shared/errors.ts';
import { toCamelCase } from '@continuo/shared/field-names.ts';
import {
  keyBody,
  keyObject,
  keyPatch,
  keyQuery,
  type newKey,
  newKeyObject,
  rotation,
} from '@continuo/shared/key-objects.ts';
import { importSigningKey, sha256Hex } from '@continuo/shared/signing.ts';
import type * as z from 'zod';
import type { RequestContext } from '../http/request-context.ts';
import type { EntryMaker, Operation } from '../operations/operation.ts';
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
import { existing, page, showKey } from './admin-objects.ts';
import { adminOperation } from './admin-operation.ts';
import { limitWarning } from './limit-warning.ts';
import { priceWarning } from './price-warning.ts';

type KeyTerms = Omit<KeyRecord, 'id' | 'hash' | 'createdAt' | 'revokedAt' | 'disabled' | 'replacedBy'>;

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

/** Keys that manage keys have no other scope; admin keys are the operator's. @throws ApiError 400 */
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

/** Returns the role of a new key. @throws ApiError 400 */
function roleOf(role: string | null, scopes: readonly string[]): string | null {
  if (scopes.includes('admin')) return role ?? 'owner';
  if (role === null) return null;
  const message = "Invalid 'role': only keys with the scope 'admin' have roles.";
  throw new ApiError('conflicting_parameters', message, { param: 'role' });
}

const alreadyExpired = (): ApiError =>
  new ApiError(
    'invalid_value',
    "Invalid 'expires_at': the time is in the past. Send Unix seconds in the future.",
    { param: 'expires_at' },
  );

const expiryOf = (seconds: number | null, { now }: RequestContext): number | null => {
  if (seconds !== null && seconds * 1000 <= now()) throw alreadyExpired();
  return seconds && seconds * 1000;
};

/** Blocks a key that must not be used any more at once, in spite of the Workers' caches, and no other. */
async function block({ id, tenantId }: KeyRecord, context: RequestContext): Promise<void> {
  const isBlocked = async () => {
    const key = await readKeyRecord(context.env.DB, id);
    const now = context.now();
    return key && (key.disabled || key.revokedAt !== null || (key.expiresAt ?? now + 1) <= now);
  };
  await syncBlock({ tenantId, keyId: id }, isBlocked, context);
  context.keys.forget(id);
}

/** Returns a key, of any tenant if `tenantId` is null. @throws ApiError 404 */
export async function findKey(
  id: string,
  tenantId: string | null,
  { env }: RequestContext,
): Promise<KeyRecord> {
  const key = await readKeyRecord(env.DB, id);
  return existing(tenantId === null || key?.tenantId === tenantId ? key : null, 'key', id);
}

/** A key that exists must be shown, also if its limiter fails: no later response does. */
const UNCHECKED_LIMITS = 'The limits could not be compared with what the account has left.';
const STILL_USABLE = 'The old key may work for another minute: its end did not reach all places.';

/** Creates a key for a tenant. Returns the only object that shows it. @throws ApiError 400 */
export async function addKey(
  tenantId: string,
  body: z.infer<typeof newKey> & { readonly role?: string | null },
  entry: EntryMaker,
  context: RequestContext,
): Promise<z.infer<typeof newKeyObject>> {
  const { expires_at, limits, allowed_addresses: allowedAddresses, ...rest } = body;
  checkScopes(body.scopes, tenantId);
  const role = roleOf(body.role ?? null, body.scopes);
  const expiresAt = expiryOf(expires_at, context);
  const terms = { ...rest, tenantId, role, limits: toCamelCase(limits), expiresAt, allowedAddresses };
  const { record, key } = await createKey(terms, context);
  await insertKey(context.env.DB, record, entry(record.id, tenantId, { ...body, role }));
  const warnings = await Promise.all([
    limitWarning(record.id, record.limits, context).catch(() => UNCHECKED_LIMITS),
    priceWarning(limits, context),
  ]);
  const warning = warnings.filter((text) => text !== undefined).join(' ');
  return { ...showKey(record), key, ...(warning !== '' && { warning }) };
}

/** Changes a key. It is disabled at once; the other changes take at most one minute. @throws ApiError 400 */
export async function changeKey(
  old: KeyRecord,
  patch: z.infer<typeof keyPatch>,
  entry: EntryMaker,
  context: RequestContext,
): Promise<z.infer<typeof keyObject>> {
  const { expires_at, limits, allowed_addresses: allowedAddresses, ...rest } = patch;
  const expiresAt = expires_at === undefined ? undefined : expiryOf(expires_at, context);
  const changes = { ...rest, expiresAt, allowedAddresses, limits: limits && toCamelCase(limits) };
  const key = existing(
    await updateKey(context.env.DB, old.id, changes, entry(old.id, old.tenantId, patch)),
    'key',
    old.id,
  );
  if (rest.disabled !== undefined || expiresAt !== undefined) await block(key, context);
  context.keys.forget(key.id);
  const warning = await priceWarning(limits, context);
  return { ...(await keyShown(key, context)), ...(warning !== undefined && { warning }) };
}

/** Replaces a key by a new one with the same settings. @throws ApiError 409 */
export async function rotateKey(
  old: KeyRecord,
  { overlap_seconds }: z.infer<typeof rotation>,
  entry: EntryMaker,
  context: RequestContext,
): Promise<z.infer<typeof newKeyObject>> {
  const now = context.now();
  const { record, key } = await createKey(old, context);
  const endsAt = Math.min(old.expiresAt ?? Number.POSITIVE_INFINITY, now + overlap_seconds * 1000);
  const expired = (old.expiresAt ?? now + 1) <= now;
  const rotated = entry(old.id, old.tenantId, { replaced_by: record.id, overlap_seconds });
  if (expired || !(await replaceKey(context.env.DB, old, record, endsAt, rotated))) {
    throw new ApiError('conflict', `The key '${old.id}' is revoked, expired or already replaced.`);
  }
  const warning = endsAt <= now && (await block(old, context).catch(() => STILL_USABLE));
  context.keys.forget(old.id);
  return { ...showKey(record), key, ...(typeof warning === 'string' && { warning }) };
}

/** Ends a key at once. */
export async function endKey(
  key: KeyRecord,
  entry: EntryMaker,
  context: RequestContext,
): Promise<z.infer<typeof keyObject>> {
  await revokeKey(context.env.DB, key.id, context.now(), entry(key.id, key.tenantId));
  await block(key, context);
  return keyShown(existing(await readKeyRecord(context.env.DB, key.id), 'key', key.id), context);
}

/** Returns the last days of use; none of tenants that cannot be asked: their keys must stay manageable. */
export async function usesOf(
  keys: readonly { readonly id: string; readonly tenantId: string }[],
  context: RequestContext,
): Promise<ReadonlyMap<string, string>> {
  const uses = [...Map.groupBy(keys, ({ tenantId }) => tenantId)].map(async ([tenantId, all]) => {
    const question = { kind: 'lastUses', tenantId, keyIds: all.map(({ id }) => id) } as const;
    return askTenant(context, tenantId, question).catch(() => []);
  });
  return new Map((await Promise.all(uses)).flat());
}

/** Returns a page of the keys of one tenant, or of all if `tenantId` is null. */
export async function keyPage(
  tenantId: string | null,
  { after, limit }: z.infer<typeof pageQuery>,
  context: RequestContext,
) {
  const keys = await listKeys(context.env.DB, tenantId, after, limit + 1);
  const uses = await usesOf(keys, context);
  return page(keys, limit, (key) => showKey(key, uses.get(key.id)));
}

export async function keyShown(key: KeyRecord, context: RequestContext): Promise<z.infer<typeof keyObject>> {
  return showKey(key, (await usesOf([key], context)).get(key.id));
}

export const KEY_OPERATIONS: readonly Operation[] = [
  adminOperation('GET', '/keys', {
    summary: 'List the keys of all tenants or of one tenant',
    roles: ['billing', 'read-only', 'tenant'],
    query: keyQuery,
    response: listOf(keyObject),
    run: ({ query, tenantId }, context) => keyPage(tenantId ?? query.tenant ?? null, query, context),
  }),
  adminOperation('POST', '/keys', {
    summary: 'Create a key; only this response shows it',
    status: 201,
    roles: ['tenant'],
    body: keyBody,
    response: newKeyObject,
    async run({ body: { tenant, ...body }, tenantId, entry }, context) {
      checkScopes(body.scopes, tenant);
      if ((tenantId !== null && tenantId !== tenant) || (await readTenant(context.env.DB, tenant)) === null) {
        throw new ApiError('invalid_value', `There is no tenant '${tenant}'.`, { param: 'tenant' });
      }
      return addKey(tenant, body, entry, context);
    },
  }),
  adminOperation('GET', '/keys/{id}', {
    summary: 'Show a key',
    roles: ['billing', 'read-only', 'tenant'],
    response: keyObject,
    run: async ({ id, tenantId }, context) => keyShown(await findKey(id, tenantId, context), context),
  }),
  adminOperation('PATCH', '/keys/{id}', {
    summary: 'Change a key without replacing it',
    roles: ['tenant'],
    body: keyPatch,
    response: keyObject,
    run: async ({ id, body, tenantId, entry }, context) =>
      changeKey(await findKey(id, tenantId, context), body, entry, context),
  }),
  adminOperation('POST', '/keys/{id}/rotate', {
    summary: 'Replace a key by a new one with the same settings; the old one works until the overlap ends',
    status: 201,
    roles: ['tenant'],
    body: rotation,
    response: newKeyObject,
    run: async ({ id, body, tenantId, entry }, context) =>
      rotateKey(await findKey(id, tenantId, context), body, entry, context),
  }),
  adminOperation('DELETE', '/keys/{id}', {
    summary:
      'Revoke a key: admin calls are rejected at once, completions within 2 s, all others within one minute',
    roles: ['tenant'],
    response: keyObject,
    run: async ({ id, tenantId, entry }, context) =>
      endKey(await findKey(id, tenantId, context), entry, context),
  }),
];
