import { sha256Hex } from '../../shared/signing.ts';
import type { Tenant } from '../../shared/tenant.ts';

/** The same for the same end user of a tenant, so that abuse can be traced, and no name that a log would give away. */
export async function pseudonymOf(endUser: string | null, tenant: Tenant): Promise<string | null> {
  return endUser === null ? null : (await sha256Hex(`${tenant.id}\n${endUser}`)).slice(0, 16);
}
