import { type Principal, type Scope, UNLIMITED } from '@continuo/shared/tenant.ts';

/** A tenant and a key without database records. The configuration has the key's hash. */
function builtIn(id: string, name: string, scopes: readonly Scope[]): Principal {
  return {
    tenant: {
      id,
      name,
      suspended: false,
      limits: UNLIMITED,
      weight: 1,
      dialect: 'openai',
      openObjects: false,
      anyKeyOrder: false,
      waitForTokens: false,
      aliases: {},
    },
    key: {
      id,
      tenantId: id,
      name: `${name} key`,
      scopes,
      role: 'owner',
      models: null,
      expiresAt: null,
      allowedAddresses: null,
      revokedAt: null,
      limits: UNLIMITED,
    },
  };
}

/** The tenant of a development server: no limits, all scopes. */
export const DEVELOPMENT = builtIn('development', 'Development', ['completions', 'models', 'admin']);

/** Id of the tenant of all admin keys. A migration creates its record. */
export const OPERATOR_TENANT = 'operator';

/** The first admin key, which creates the other keys. It has only the scope `admin`. */
export const BOOTSTRAP_ADMIN = builtIn(OPERATOR_TENANT, 'Operator', ['admin']);
