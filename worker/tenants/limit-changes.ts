import type { Limits } from '@continuo/shared/tenant.ts';

/** Limits to change; the others stay. null = no limit, 'plan' = the plan's limit. */
export type LimitChanges = { readonly [K in keyof Limits]?: Limits[K] | 'plan' | undefined };

/**
 * Returns the SQL for the changed column `limits`. `parameter` is bound to the changes as JSON. Computed in SQL, so that
 * concurrent changes of different limits are all kept.
 */
export const changedLimits = (parameter: string): string => `(
  SELECT json_group_object(key, value) FROM (
    SELECT key, value FROM json_each(COALESCE(limits, '{}')) WHERE key NOT IN (SELECT key FROM json_each(${parameter}))
    UNION ALL SELECT key, value FROM json_each(${parameter}) WHERE value IS NOT 'plan'
  ))`;
