import { newApiKey, newCheckedId } from '@continuo/shared/api-key.ts';
import { ApiError } from '@continuo/shared/errors.ts';
import { toCamelCase } from '@continuo/shared/field-names.ts';
import { importSigningKey, sha256Hex } from '@continuo/shared/signing.ts';
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
} from '../tenants/key-store.ts';
import { readTenant } from '../tenants/tenant-store.ts';
import { retry } from '../timers/retry.ts';
import { found, page, showKey } from './admin-objects.ts';
import { type AdminOperation, operation } from './admin-operation.ts';
import { keyBody, keyObject, keyQuery, listOf, newKeyObject, rotation } from './admin-schemas.ts';

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
    record: { ...terms, id, hash, createdAt: now(), revokedAt: null, replacedBy: null },
    key: secret,
  };
}

/** Admin keys have no other scope and belong to the operator's tenant. @throws ApiError 400 */
function checkScopes(scopes: readonly string[], tenantId: string): void {
  const admin = scopes.includes('admin');
  if (admin && scopes.length > 1) {
    const message = "Invalid 'scopes': 'admin' cannot be combined with other scopes.";
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

/** Blocks a key at once, in spite of the Workers' caches. */
const block = ({ id, tenantId }: KeyRecord, context: RequestContext): Promise<void> =>
  retry(() => limiterOf(context, tenantId).block(id, true), context.backoff);

export const KEY_OPERATIONS: readonly AdminOperation[] = [
  operation({
    method: 'GET',
    path: '/keys',
    summary: 'List the keys of all tenants or of one tenant',
    status: 200,
    query: keyQuery,
    response: listOf(keyObject),
    run: async ({ query }, { env }) =>
      page(await listKeys(env.DB, query.tenant ?? null, query.after, query.limit + 1), query.limit, showKey),
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
      const { tenant: tenantId, expires_at, name, scopes, models } = body;
      const expiresAt = expires_at === null ? null : expires_at * 1000;
      if (expiresAt !== null && expiresAt <= context.now()) throw alreadyExpired();
      const terms = { tenantId, name, scopes, models, limits: toCamelCase(body.limits), expiresAt };
      const { record, key } = await createKey(terms, context);
      await insertKey(context.env.DB, record);
      return { ...showKey(record), key };
    },
  }),
  operation({
    method: 'GET',
    path: '/keys/{id}',
    summary: 'Show a key',
    status: 200,
    response: keyObject,
    run: async ({ id }, { env }) => showKey(found(await readKeyRecord(env.DB, id), 'key', id)),
  }),
  operation({
    method: 'POST',
    path: '/keys/{id}/rotate',
    summary: 'Replace a key by a new one with the same settings; the old one works until the overlap ends',
    status: 201,
    body: rotation,
    example: { overlap_seconds: 3600 },
    response: newKeyObject,
    async run({ id, body }, context) {
      const old = found(await readKeyRecord(context.env.DB, id), 'key', id);
      const now = context.now();
      const { record, key } = await createKey(old, context);
      const endsAt = Math.min(old.expiresAt ?? Number.POSITIVE_INFINITY, now + body.overlap_seconds * 1000);
      const expired = (old.expiresAt ?? now + 1) <= now;
      if (expired || !(await replaceKey(context.env.DB, old, record, endsAt))) {
        throw new ApiError('conflict', `The key '${id}' is revoked, expired or already replaced.`);
      }
      if (endsAt <= now) await block(old, context);
      context.keys.forget(id);
      return { ...showKey(record), key };
    },
  }),
  operation({
    method: 'DELETE',
    path: '/keys/{id}',
    summary:
      'Revoke a key: admin calls are rejected at once, completions within 2 s, all others within one minute',
    status: 200,
    response: keyObject,
    async run({ id }, context) {
      const key = found(await readKeyRecord(context.env.DB, id), 'key', id);
      await revokeKey(context.env.DB, id, context.now());
      await block(key, context);
      context.keys.forget(id);
      return showKey(found(await readKeyRecord(context.env.DB, id), 'key', id));
    },
  }),
];
