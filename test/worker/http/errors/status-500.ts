import { ADMIN_KEY } from '../../admin/admin-client.ts';
import type { ErrorCase } from './case.ts';

export const STATUS_500: readonly ErrorCase[] = [
  {
    name: 'a bug of the Worker, without details',
    send: async (worker) => {
      const rename = (from: string, to: string) =>
        worker.database.prepare(`ALTER TABLE ${from} RENAME TO ${to}`).run();
      await rename('plans', 'hidden_plans');
      try {
        return await worker.request('/admin/v1/plans', { headers: { authorization: `Bearer ${ADMIN_KEY}` } });
      } finally {
        await rename('hidden_plans', 'plans');
      }
    },
    type: 'server_error',
    code: 'internal_error',
    param: null,
    message: /^The server had an error while processing your request\.$/,
  },
];
