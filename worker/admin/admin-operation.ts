import type { Principal, Scope } from '@continuo/shared/tenant.ts';
import type * as z from 'zod';
import { authenticate } from '../auth/auth.ts';
import { insufficientRole } from '../auth/auth-errors.ts';
import { parseRequest } from '../dialects/parse-request.ts';
import { readJsonObject } from '../http/request-body.ts';
import type { RequestContext } from '../http/request-context.ts';
import { jsonResponse } from '../http/responses.ts';
import type { AuditEntry } from '../tenants/audit-log.ts';

/** A role of admin keys beside `owner`, which may call everything. `tenant` is the role `tenant:ID`. */
type Role = 'billing' | 'read-only' | 'tenant';

/** Defines an operation on records and its route. */
interface RouteSpec<Body, Query> {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  /** Path below /admin/v1 or /v1, with at most one `{id}`. */
  readonly path: string;
  /** Status of the answer; absent = 200. */
  readonly status?: 201;
  readonly body?: z.ZodType<Body>;
  readonly query?: z.ZodType<Query>;
  readonly run: (input: OperationInput<Body, Query>, context: RequestContext) => Promise<unknown>;
}

/** An operation of the admin API, with its OpenAPI description. */
interface OperationSpec<Body, Query> extends RouteSpec<Body, Query> {
  readonly summary: string;
  /** Roles that may call it beside the owner. Default: for GET, those that read everything. */
  readonly roles?: readonly Role[];
  /** Example of a request body, for the OpenAPI document. */
  readonly example?: Readonly<Record<string, unknown>>;
  readonly response: z.ZodType;
}

interface OperationInput<Body, Query> {
  readonly id: string;
  readonly principal: Principal;
  /** The only tenant that the caller may see and change; null = all. */
  readonly tenantId: string | null;
  readonly body: Body;
  readonly query: Query;
  /** Returns the entry of the audit log that every change needs. */
  readonly entry: EntryMaker;
}

/** Returns the entry for a change of `target`, which belongs to the tenant. */
export type EntryMaker = (target: string, tenantId: string | null, changes?: object) => AuditEntry;

/** An operation without its type parameters. */
export interface AdminOperation extends Omit<OperationSpec<unknown, unknown>, 'run'> {
  handle(request: Request, context: RequestContext, id: string): Promise<Response>;
}

/** An operation that openapi/ describes. */
export type AccountOperation = Pick<AdminOperation, 'method' | 'path' | 'handle'>;

export const ADMIN_BASE = '/admin/v1';

const VERBS = { GET: 'show', POST: 'create', PATCH: 'change' } as const;

/** `POST /keys/{id}/rotate` → `rotateKey`, `GET /plans` → `listPlans`, `PATCH /plans/{id}` → `changePlan`. */
export function operationId({ method, path }: Pick<AdminOperation, 'method' | 'path'>): string {
  const [collection = '', id, action] = path.split('/').slice(1);
  const name = collection[0]!.toUpperCase() + collection.slice(1);
  if (method === 'GET' && id === undefined) return `list${name}`;
  const verb = method === 'DELETE' ? (collection === 'tenants' ? 'erase' : 'revoke') : VERBS[method];
  return (action ?? verb) + name.replace(/s$/, '');
}

const READERS: readonly Role[] = ['billing', 'read-only'];

/** Returns the tenant that an admin key is bound to; null = none. @throws ApiError 403 if its role lacks the operation */
function tenantOfRole(
  { key }: Principal,
  { method, roles = method === 'GET' ? READERS : [] }: Pick<AdminOperation, 'method' | 'roles'>,
): string | null {
  // Releases without roles make owners.
  const [role = '', tenantId = null] = (key.role ?? 'owner').split(':');
  if (role !== 'owner' && !roles.some((one) => one === role)) throw insufficientRole(key.role);
  return tenantId;
}

/** Creates an operation of the admin API. */
export function operation<Body = undefined, Query = undefined>(
  spec: OperationSpec<Body, Query>,
): AdminOperation {
  const { run, ...described } = spec;
  return { ...described, handle: handlerOf(spec, 'admin', (principal) => tenantOfRole(principal, spec)) };
}

/**
 * Creates an operation on the caller's own tenant.
 * @param scope what the key needs; null = any key
 */
export const accountOperation = <Body = undefined, Query = undefined>(
  scope: Scope | null,
  spec: RouteSpec<Body, Query>,
): AccountOperation => ({
  method: spec.method,
  path: spec.path,
  handle: handlerOf(spec, scope, ({ tenant }) => tenant.id),
});

/**
 * Returns the handler of an operation. Every operation authenticates its caller, whatever the order of the routes.
 * @param tenantOf returns the only tenant that the caller may see and change; null = all
 */
function handlerOf<Body, Query>(
  { run, ...spec }: RouteSpec<Body, Query>,
  scope: Scope | null,
  tenantOf: (principal: Principal) => string | null,
): AdminOperation['handle'] {
  return async (request, context, id) => {
    const principal = await authenticate(request, context, scope);
    const tenantId = tenantOf(principal);
    const entry: EntryMaker = (target, ofTenant, changes = {}) => ({
      at: context.now(),
      actor: principal.key.id,
      actorTenant: principal.tenant.id,
      address: request.headers.get('cf-connecting-ip'),
      requestId: context.requestId,
      action: operationId(spec),
      ...{ target, tenantId: ofTenant, changes },
    });
    const url = new URL(request.url);
    const query = parse(spec.query, Object.fromEntries(url.searchParams));
    const body = parse(spec.body, spec.body && (await bodyOf(request, context)));
    const answer = await run({ id, principal, tenantId, body, query, entry }, context);
    return answer instanceof Response ? answer : jsonResponse(answer, { status: spec.status ?? 200 });
  };
}

/** A missing body counts as an empty object. */
async function bodyOf(request: Request, context: RequestContext): Promise<unknown> {
  return request.body === null ? {} : await readJsonObject(request, context);
}

/** Without a schema, T is `undefined`, so the cast is safe. */
const parse = <T>(schema: z.ZodType<T> | undefined, value: unknown): T =>
  schema === undefined ? (undefined as T) : parseRequest(schema, value);
