import type { Principal, Scope } from '@continuo/shared/tenant.ts';
import type * as z from 'zod';
import { authenticate } from '../auth/auth.ts';
import { parseRequest } from '../dialects/parse-request.ts';
import { readJsonObject } from '../http/request-body.ts';
import type { RequestContext } from '../http/request-context.ts';
import { jsonResponse } from '../http/responses.ts';

/** Defines an operation on records, its route and its OpenAPI description. */
interface OperationSpec<Body, Query> {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  /** Path below /admin/v1 or /v1, with at most one `{id}`. */
  readonly path: string;
  readonly summary: string;
  readonly status: 200 | 201;
  readonly body?: z.ZodType<Body>;
  /** Example of a request body, for the OpenAPI document. */
  readonly example?: Readonly<Record<string, unknown>>;
  readonly query?: z.ZodType<Query>;
  readonly response: z.ZodType;
  readonly run: (input: OperationInput<Body, Query>, context: RequestContext) => Promise<unknown>;
}

interface OperationInput<Body, Query> {
  readonly id: string;
  readonly principal: Principal;
  readonly body: Body;
  readonly query: Query;
}

/** An operation without its type parameters. */
export interface AdminOperation extends Omit<OperationSpec<unknown, unknown>, 'run'> {
  handle(request: Request, context: RequestContext, id: string): Promise<Response>;
}

export const ADMIN_BASE = '/admin/v1';

/**
 * Creates an operation. Every operation authenticates its caller, whatever the order of the routes.
 * @param scope what the key needs; null = any key
 */
export function operation<Body = undefined, Query = undefined>(
  spec: OperationSpec<Body, Query>,
  scope: Scope | null = 'admin',
): AdminOperation {
  const { run, ...described } = spec;
  return {
    ...described,
    async handle(request, context, id) {
      const principal = await authenticate(request, context, scope);
      const url = new URL(request.url);
      const query = parse(spec.query, Object.fromEntries(url.searchParams));
      const body = parse(spec.body, spec.body && (await bodyOf(request, context)));
      const answer = await run({ id, principal, body, query }, context);
      return answer instanceof Response ? answer : jsonResponse(answer, { status: spec.status });
    },
  };
}

/** A missing body counts as an empty object. */
async function bodyOf(request: Request, context: RequestContext): Promise<unknown> {
  return request.body === null ? {} : await readJsonObject(request, context);
}

/** Without a schema, T is `undefined`, so the cast is safe. */
const parse = <T>(schema: z.ZodType<T> | undefined, value: unknown): T =>
  schema === undefined ? (undefined as T) : parseRequest(schema, value);
