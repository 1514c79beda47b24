import { type Principal, type Scope, UNLIMITED } from '../../shared/tenant.ts';

/** A tenant and key that exist without any database, known by a hash in the configuration. */
function builtIn(id: string, name: string, scopes: readonly Scope[]): Principal {
  return {
    tenant: { id, name, suspended: false, limits: UNLIMITED, weight: 1, dialect: 'openai' },
    key: {
      id,
      tenantId: id,
      name: `${name} key`,
      scopes,
      models: null,
      expiresAt: null,
      revokedAt: null,
      limits: UNLIMITED,
    },
  };
}

/** Whoever starts a development server owns it: no limits, and the admin API too. */
export const DEVELOPMENT = builtIn('development', 'Development', ['completions', 'models', 'admin']);

/** The tenant of admin keys; a migration makes its record. */
export const OPERATOR_TENANT = 'operator';

/** The first admin key, with which the others are made; it can do nothing else. */
export const BOOTSTRAP_ADMIN = builtIn(OPERATOR_TENANT, 'Operator', ['admin']);
