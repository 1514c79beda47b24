import { useOwnKey } from '../account/account.ts';

/** What an admin key may do, by its role. */
export interface Rights {
  /** The only tenant that it may see and change; null = all. */
  readonly tenant: string | null;
  /** Tenants: create and erase. Upstreams: set and remove. */
  readonly owns: boolean;
  /** Plans, prices and balances, and the plan and limits of a tenant. */
  readonly bills: boolean;
  /** Tenants: change. */
  readonly changesTenants: boolean;
}

export function rightsOf(role: string | null): Rights {
  const [kind, tenant = null] = role?.split(':') ?? [];
  const owns = kind === 'owner';
  const bills = owns || kind === 'billing';
  return { tenant, owns, bills, changesTenants: bills || kind === 'tenant' };
}

export const useRights = (): Rights => rightsOf(useOwnKey().role);
