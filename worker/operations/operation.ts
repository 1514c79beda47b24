import type { ErrorCode } from '@continuo/shared/errors.ts';
import type { Principal, Scope } from '@continuo/shared/tenant.ts';
import type * as z from 'zod';
import { authenticate } from '../auth/auth.ts';
import { parseRequest } from '../dialects/parse-request.ts';
import type { HeaderDescriptions } from '../http/headers.ts';
import { readJsonObject } from '../http/request-body.ts';
import type { RequestContext } from '../http/request-context.ts';
import { jsonResponse } from '../http/responses.ts';
import type { Route, RouteHandler } from '../http/router.ts';
import { idempotent } from '../replay/idempotent.ts';
import { resumable } from '../replay/resumable.ts';
import type { AuditEntry } from '../tenants/audit-log.ts';
import { withLimitHeaders } from './limit-headers.ts';

/** What the API documents say of an operation. The names and examples of its schemas are in `documented`. */
interface Description {
  readonly id: string;
  readonly summary: string;
  /** Scope that the key needs; null = any key; absent = no key. */
  readonly scope?: Scope | null;
  /** Fields of a multipart/form-data body, in place of a JSON body. */
  readonly form?: z.ZodType;
  /** Status of a successful response; absent = 200. */
  readonly status?: 201;
  /** Schema of a JSON response; absent if all responses are streams or files. */
  readonly response?: z.ZodType;
  /** Schema of the stream events, if the response can be a stream. */
  readonly events?: z.ZodType;
  /** The response is a file of JSON Lines. */
  readonly isFile?: true;
  /**
   * Codes of the possible errors, beside those of authentication, of an unknown id, and of reading a body.
   */
  readonly errors?: readonly ErrorCode[];
  /** Header parameters, in addition to those of every operation; all are optional strings. */
  readonly requestHeaders?: HeaderDescriptions;
  /** Headers of a successful response, in addition to the common ones. */
  readonly responseHeaders?: HeaderDescriptions;
  /** Responses have `x-ratelimit-*` headers. */
  readonly isLimited?: true;
  /** A request with an idempotency key runs once. */
  readonly isRepeatable?: true;
  /** A stream can be resumed after a lost connection. */
  readonly isResumable?: true;
}

/** An operation of the public API or of the admin API. Routing and the API documents read it. */
export interface Operation extends Route, Description {
  readonly query?: z.ZodType;
  readonly body?: z.ZodType;
}

export interface OperationSpec<Body, Query> extends Description {
  readonly scope: Scope | null;
  /** Query parameters. */
  readonly query?: z.ZodType<Query>;
  /** JSON body. A missing one counts as an empty object. */
  readonly body?: z.ZodType<Body>;
  /** JSON body that `run` reads, because its limits or its schema depend on the request. */
  readonly ownBody?: z.ZodType;
  /**
   * Returns the only tenant that the caller may see and change; null = all. Default: the caller's.
   * @throws ApiError 403
   */
  readonly tenantOf?: (principal: Principal) => string | null;
  /** Returns the response, or the value of a JSON response. */
  readonly run: (input: OperationInput<Body, Query>, context: RequestContext) => unknown;
}

export interface OperationInput<Body = undefined, Query = undefined> {
  readonly request: Request;
  readonly id: string;
  readonly principal: Principal;
  readonly tenantId: string | null;
  readonly body: Body;
  readonly query: Query;
  /** Returns the entry of the audit log that every change of tenants, plans and keys needs. */
  readonly entry: EntryMaker;
}

/** Returns the entry for a change of `target`, which belongs to the tenant. */
export type EntryMaker = (target: string, tenantId: string | null, changes?: object) => AuditEntry;

/** Creates an operation that needs a key. */
export function operation<Body = undefined, Query = undefined>(
  method: Route['method'],
  path: string,
  spec: OperationSpec<Body, Query>,
): Operation {
  const { run, tenantOf, ownBody, ...described } = spec;
  let handler = handlerOf(spec);
  if (spec.isRepeatable) handler = idempotent(handler);
  if (spec.isResumable) handler = resumable(handler);
  if (spec.isLimited) handler = withLimitHeaders(handler);
  return { method, path, ...described, ...(ownBody && { body: ownBody }), handler };
}

/** Returns the handler of an operation. It authenticates the caller before it reads anything else. */
function handlerOf<Body, Query>(spec: OperationSpec<Body, Query>): RouteHandler {
  const { tenantOf = ({ tenant }) => tenant.id, status = 200 } = spec;
  return async (request, context, id) => {
    const principal = await authenticate(request, context, spec.scope);
    const tenantId = tenantOf(principal);
    const entry: EntryMaker = (target, ofTenant, changes = {}) => ({
      at: context.now(),
      actor: principal.key.id,
      actorTenant: principal.tenant.id,
      address: request.headers.get('cf-connecting-ip'),
      requestId: context.requestId,
      action: spec.id,
      target,
      tenantId: ofTenant,
      changes,
    });
    const query = parse(spec.query, spec.query && queryOf(request));
    const body = parse(spec.body, spec.body && (await bodyOf(request, context)));
    const result = await spec.run({ request, id, principal, tenantId, body, query, entry }, context);
    return result instanceof Response ? result : jsonResponse(result, { status });
  };
}

const queryOf = ({ url }: Request) => Object.fromEntries(new URL(url).searchParams);

const bodyOf = async (request: Request, context: RequestContext): Promise<unknown> =>
  request.body === null ? {} : await readJsonObject(request, context);

/** Without a schema, T is `undefined`, so the cast is safe. */
const parse = <T>(schema: z.ZodType<T> | undefined, value: unknown): T =>
  schema === undefined ? (undefined as T) : parseRequest(schema, value);
