import { ApiError } from '../shared/errors.ts';
import { sha256Hex } from '../shared/signing.ts';
import { type Principal, type Scope, UNLIMITED } from '../shared/tenant.ts';
import type { RequestContext } from './context.ts';

const CHALLENGE = { 'www-authenticate': 'Bearer' };

const DEVELOPMENT: Principal = {
  tenant: {
    id: 'development',
    name: 'Development',
    suspended: false,
    limits: UNLIMITED,
    weight: 1,
    dialect: 'openai',
  },
  key: {
    id: 'development',
    tenantId: 'development',
    name: 'Development key',
    scopes: ['completions', 'models'],
    models: null,
    expiresAt: null,
    revokedAt: null,
    limits: UNLIMITED,
  },
};

const encoder = new TextEncoder();

function sameHash(left: string, right: string): boolean {
  return left.length === right.length && crypto.subtle.timingSafeEqual(encoder.encode(left), encoder.encode(right));
}

/**
 * Who is calling.
 * @throws ApiError 401 without a key or with a wrong one, 403 when the key lacks `scope`
 */
export async function authenticate(request: Request, context: RequestContext, scope: Scope): Promise<Principal> {
  const header = request.headers.get('authorization');
  const key = /^bearer +(\S+)$/i.exec(header?.trim() ?? '')?.[1];
  if (key === undefined) {
    const message = "You didn't provide an API key. Send it as a header: Authorization: Bearer YOUR_KEY.";
    throw new ApiError('missing_api_key', message, { headers: CHALLENGE });
  }
  const expected = context.settings.DEVELOPMENT_KEY_SHA256;
  if (expected === undefined || !sameHash(await sha256Hex(key), expected)) {
    throw new ApiError('invalid_api_key', 'Incorrect API key provided.', { headers: CHALLENGE });
  }
  if (!DEVELOPMENT.key.scopes.includes(scope)) {
    throw new ApiError('insufficient_scope', `This key has no right to use '${scope}'.`);
  }
  return DEVELOPMENT;
}
