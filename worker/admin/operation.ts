import type * as z from 'zod';
import { authenticate } from '../auth/auth.ts';
import type { RequestContext } from '../context.ts';
import { parseRequest } from '../dialects/issues.ts';
import { readJsonObject } from '../http/request-body.ts';
import { jsonResponse } from '../http/responses.ts';

/** One operation of the admin API; its route and its OpenAPI description both come from this. */
export interface OperationSpec<Body, Query> {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  /** Below /admin/v1; at most one `{id}`. */
  readonly path: string;
  readonly summary: string;
  readonly status: 200 | 201;
  readonly body?: z.ZodType<Body>;
  readonly query?: z.ZodType<Query>;
  readonly response: z.ZodType;
  readonly run: (input: OperationInput<Body, Query>, context: RequestContext) => Promise<unknown>;
}

export interface OperationInput<Body, Query> {
  readonly id: string;
  readonly body: Body;
  readonly query: Query;
}

/** An operation whose types are known to itself alone. */
export interface Operation extends Omit<OperationSpec<unknown, unknown>, 'run'> {
  handle(request: Request, context: RequestContext, id: string): Promise<Response>;
}

export const ADMIN_BASE = '/admin/v1';

/** Authentication is part of every operation, so that no order of routes can leave it out. */
export function operation<Body = undefined, Query = undefined>(spec: OperationSpec<Body, Query>): Operation {
  const { run, ...described } = spec;
  return {
    ...described,
    async handle(request, context, id) {
      await authenticate(request, context, 'admin');
      const url = new URL(request.url);
      const query = parsed(spec.query, Object.fromEntries(url.searchParams));
      const body = parsed(spec.body, spec.body && (await bodyOf(request, context)));
      const answer = await run({ id, body, query }, context);
      return jsonResponse(answer, { status: spec.status, headers: { 'cache-control': 'no-store' } });
    },
  };
}

/** An operation whose fields all have defaults may be asked without a body. */
async function bodyOf(request: Request, context: RequestContext): Promise<unknown> {
  return request.body === null ? {} : await readJsonObject(request, context);
}

/** An operation without the schema has no use for the value; its type says so, which is why the cast holds. */
const parsed = <T>(schema: z.ZodType<T> | undefined, value: unknown): T =>
  schema === undefined ? (undefined as T) : parseRequest(schema, value);
