import * as z from 'zod';
import { queryUsage, SUMS, type UsageSums } from '../usage/usage-query.ts';
import { type AdminOperation, operation } from './admin-operation.ts';
import { listOf, usageQuery, usageRow } from './admin-schemas.ts';

const mean = (sum: number, count: number): number | null => (count === 0 ? null : sum / count);

function showRow({ latency_ms, first_token_ms, first_tokens, ...row }: UsageSums) {
  return {
    object: 'usage',
    ...row,
    mean_latency_ms: mean(latency_ms, row.requests),
    mean_first_token_ms: mean(first_token_ms, first_tokens),
  };
}

/** Returns the sums of all rows. */
function total(rows: readonly UsageSums[]): Record<string, number> {
  return Object.fromEntries(SUMS.map((name) => [name, rows.reduce((sum, row) => sum + row[name], 0)]));
}

export const USAGE_OPERATIONS: readonly AdminOperation[] = [
  operation({
    method: 'GET',
    path: '/usage',
    summary: 'Show usage by day, tenant, model and key, without running requests',
    status: 200,
    query: usageQuery,
    response: listOf(usageRow).extend({ total: z.record(z.string(), z.int()) }),
    async run({ query }, { env }) {
      const filter = {
        from: query.from ?? null,
        to: query.to ?? null,
        tenantId: query.tenant ?? null,
        keyId: query.key ?? null,
        model: query.model ?? null,
      };
      const rows = await queryUsage(env.DB, filter, [...new Set(query.group_by)]);
      return { object: 'list', data: rows.map(showRow), has_more: false, total: total(rows) };
    },
  }),
];
