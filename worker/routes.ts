import { ApiError } from '../shared/errors.ts';
import { ADMIN_ROUTES } from './admin/admin-routes.ts';
import { complete } from './completions.ts';
import type { RequestContext } from './context.ts';
import { jsonResponse } from './http/responses.ts';
import { tellingLimits } from './limits/limit-headers.ts';
import { health, listModels, showModel } from './models.ts';
import { idempotent } from './replay/idempotent.ts';
import { resumable, resumeStream } from './replay/resumable.ts';
import { detokenize, showTokenizer, tokenize } from './tokenize.ts';

export type Handler = (
  request: Request,
  context: RequestContext,
  argument: string,
) => Response | Promise<Response>;

export interface RouteSpec {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  /** itty-router's pattern; `:rest+` also matches slashes and is handed to the handler, decoded. */
  readonly path: string;
  readonly handler: Handler;
}

const completions = tellingLimits(resumable(idempotent(complete)));

export const ROUTES: readonly RouteSpec[] = [
  { method: 'POST', path: '/v1/completions', handler: completions },
  { method: 'POST', path: '/api/v1/completions', handler: completions },
  { method: 'GET', path: '/v1/completions/:rest/stream', handler: tellingLimits(resumeStream) },
  { method: 'GET', path: '/v1/models', handler: listModels },
  { method: 'GET', path: '/v1/models/:rest+', handler: showModel },
  { method: 'GET', path: '/health', handler: health },
  { method: 'POST', path: '/tokenize', handler: tokenize },
  { method: 'POST', path: '/detokenize', handler: detokenize },
  { method: 'GET', path: '/tokenizer_info', handler: showTokenizer },
  { method: 'GET', path: '/openapi.json', handler: (_, context) => jsonResponse(context.openApi()) },
  ...ADMIN_ROUTES,
];

/**
 * A path component as it was before it was escaped, without the slash that may end every path; what is no escape stays as
 * it is.
 */
export function decoded(component: string): string {
  const bare = component.endsWith('/') ? component.slice(0, -1) : component;
  try {
    return decodeURIComponent(bare);
  } catch {
    return bare;
  }
}

/** 405 where the path is known under other methods, 404 where it is not known at all. */
export function refuse(method: string, path: string, allowed: readonly string[]): never {
  const shown = path.slice(0, 200);
  if (allowed.length === 0) throw new ApiError('unknown_url', `Invalid URL (${method} ${shown})`);
  const list = allowed.join(', ');
  const message = `Not allowed to ${method} on ${shown} (expected one of: ${list}).`;
  throw new ApiError('method_not_supported', message, { headers: { allow: list } });
}
