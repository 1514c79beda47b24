import type { Limits } from '../../shared/tenant.ts';

/** Limits to be changed, the others stay; null = none, 'plan' = the plan's again. */
export type LimitChanges = { readonly [K in keyof Limits]?: Limits[K] | 'plan' | undefined };

/**
 * What the column `limits` becomes by the changes bound, as JSON, to `parameter`. In SQL, so that changes of different limits
 * at once all hold.
 */
export const changedLimits = (parameter: string): string => `(
  SELECT json_group_object(key, value) FROM (
    SELECT key, value FROM json_each(COALESCE(limits, '{}')) WHERE key NOT IN (SELECT key FROM json_each(${parameter}))
    UNION ALL SELECT key, value FROM json_each(${parameter}) WHERE value IS NOT 'plan'
  ))`;
