import type { Command } from 'commander';
import { collectLimit, given, LIMIT_NAMES, type LimitOption, pathTo, positive } from './options.ts';
import type { OpenSession } from './program.ts';

interface PlanOptions {
  readonly id?: string;
  readonly name?: string;
  readonly limit?: LimitOption;
  readonly weight?: number;
}

const bodyOf = ({ limit, ...rest }: PlanOptions) => given({ ...rest, limits: limit });

const withTerms = (command: Command): Command =>
  command
    .option('--limit <name=value>', `repeatable, e.g. tokens_per_day=100000; ${LIMIT_NAMES}`, collectLimit)
    .option('--weight <number>', 'share of an origin relative to other tenants', positive);

export function addPlanCommands(program: Command, open: OpenSession): void {
  const plans = program.command('plans').description('limits that tenants share');
  plans.command('list').action(async () => {
    const { api, showList } = open();
    showList(await api.list('/plans'), ['id', 'name', 'limits', 'weight', 'created_at']);
  });
  withTerms(plans.command('create').requiredOption('--id <id>').requiredOption('--name <name>')).action(
    async (options: PlanOptions) => {
      const { api, showOne } = open();
      showOne(await api.call('POST', '/plans', bodyOf(options)));
    },
  );
  withTerms(plans.command('update <id>').option('--name <name>')).action(
    async (id: string, options: PlanOptions) => {
      const { api, showOne } = open();
      showOne(await api.call('PATCH', pathTo('plans', id), bodyOf(options)));
    },
  );
}
