import type { ErrorCode } from '@continuo/shared/errors.ts';
import type { Principal } from '@continuo/shared/tenant.ts';
import type * as z from 'zod';
import { insufficientRole } from '../auth/auth-errors.ts';
import type { Route } from '../http/router.ts';
import { type Operation, type OperationSpec, operation } from '../operations/operation.ts';

/** A role of admin keys beside `owner`, which may call everything. `tenant` is the role `tenant:ID`. */
export type Role = 'billing' | 'read-only' | 'tenant';

/** An operation of the admin API. Its id follows from method and path. */
interface AdminSpec<Body, Query>
  extends Omit<OperationSpec<Body, Query>, 'id' | 'scope' | 'tenantOf' | 'errors'> {
  /** Roles that may call it beside the owner. Default: for GET, those that read everything. */
  readonly roles?: readonly Role[];
  readonly response: z.ZodType;
}

export const ADMIN_BASE = '/admin/v1';

const VERBS = { GET: 'show', POST: 'create', PUT: 'set', PATCH: 'change', DELETE: 'revoke' } as const;
/** What DELETE does to records that are not keys. */
const REMOVALS: Readonly<Record<string, string>> = {
  plans: 'remove',
  tenants: 'erase',
  upstreams: 'remove',
};

/** `POST /keys/{id}/rotate` → `rotateKey`, `GET /plans` → `listPlans`, `PATCH /plans/{id}` → `changePlan`. */
function operationId(method: Route['method'], path: string): string {
  const [collection = '', id, action] = path.split('/').slice(1);
  const name = collection[0]!.toUpperCase() + collection.slice(1);
  if (method === 'GET' && id === undefined) return `list${name}`;
  const verb = (method === 'DELETE' && REMOVALS[collection]) || VERBS[method];
  return (action ?? verb) + name.replace(/s$/, '');
}

const READERS: readonly Role[] = ['billing', 'read-only'];

const QUERY_ERRORS: readonly ErrorCode[] = [
  'invalid_value',
  'invalid_type',
  'unsupported_parameter',
  'integer_above_max_value',
  'integer_below_min_value',
];

const BODY_ERRORS: readonly ErrorCode[] = [
  ...QUERY_ERRORS,
  'conflicting_parameters',
  'empty_string',
  'string_above_max_length',
  'empty_array',
  'decimal_above_max_value',
  'conflict',
];

/** Returns the tenant that an admin key is bound to; null = none. @throws ApiError 403 without the role */
function tenantOfRole({ key }: Principal, roles: readonly Role[]): string | null {
  // Releases without roles make owners.
  const [role = '', tenantId = null] = (key.role ?? 'owner').split(':');
  if (role !== 'owner' && !roles.some((allowed) => allowed === role)) throw insufficientRole(key.role);
  return tenantId;
}

/** Creates an operation of the admin API. @param path below /admin/v1 */
export function adminOperation<Body = undefined, Query = undefined>(
  method: Route['method'],
  path: string,
  { roles = method === 'GET' ? READERS : [], ...spec }: AdminSpec<Body, Query>,
): Operation {
  return operation<Body, Query>(method, ADMIN_BASE + path, {
    ...spec,
    id: operationId(method, path),
    scope: 'admin',
    errors: spec.body ? BODY_ERRORS : spec.query ? QUERY_ERRORS : [],
    tenantOf: (principal) => tenantOfRole(principal, roles),
  });
}
