import type { Command } from 'commander';
import { queryOf } from './options.ts';
import type { OpenSession } from './program.ts';

const COLUMNS = [
  'day',
  'tenant',
  'model',
  'key',
  'requests',
  'completed',
  'failed',
  'cancelled',
  'abandoned',
  'prompt_tokens',
  'cached_tokens',
  'completion_tokens',
  'mean_latency_ms',
  'mean_first_token_ms',
];

interface UsageOptions {
  readonly from?: string;
  readonly to?: string;
  readonly tenant?: string;
  readonly key?: string;
  readonly model?: string;
  readonly by?: string;
}

export function addUsageCommand(program: Command, open: OpenSession): void {
  program
    .command('usage')
    .description('what was used, by day and model unless told otherwise')
    .option('--from <day>', 'first UTC day, e.g. 2030-01-01')
    .option('--to <day>', 'last UTC day, included')
    .option('--tenant <id>')
    .option('--key <id>')
    .option('--model <name>')
    .option('--by <groups>', 'day, tenant, model, key, comma-separated')
    .action(async ({ by, ...filter }: UsageOptions) => {
      const { api, showList } = open();
      showList(await api.list(`/usage${queryOf({ ...filter, group_by: by })}`), COLUMNS);
    });
}
