import type { Command } from 'commander';
import { dialectName } from '../../shared/tenant.ts';
import { collectLimit, given, LIMIT_NAMES, type LimitOption, pathTo, positive } from './options.ts';
import type { OpenSession } from './program.ts';

const COLUMNS = ['id', 'name', 'plan', 'limits', 'weight', 'dialect', 'suspended', 'created_at'];

interface TenantOptions {
  readonly id?: string;
  readonly name?: string;
  readonly plan?: string;
  readonly limit?: LimitOption;
  readonly weight?: number;
  readonly dialect?: string;
}

const bodyOf = ({ limit, plan, ...rest }: TenantOptions) =>
  given({ ...rest, plan: plan === 'none' ? null : plan, limits: limit });

const withTerms = (command: Command): Command =>
  command
    .option('--plan <id>', 'plan whose limits apply; none = no plan')
    .option(
      '--limit <name=value>',
      `own limit, repeatable, e.g. requests_per_minute=60; =none lifts it, =plan returns to that of the plan; ${LIMIT_NAMES}`,
      collectLimit,
    )
    .option('--weight <number>', 'share of an origin relative to other tenants', positive)
    .option('--dialect <name>', `whose habits answers follow: ${dialectName.options.join(', ')}`);

export function addTenantCommands(program: Command, open: OpenSession): void {
  const tenants = program.command('tenants').description('those who hold keys');
  tenants.command('list').action(async () => {
    const { api, showList } = open();
    showList(await api.list('/tenants'), COLUMNS);
  });
  tenants.command('show <id>').action(async (id: string) => {
    const { api, showOne } = open();
    showOne(await api.call('GET', pathTo('tenants', id)));
  });
  withTerms(tenants.command('create').requiredOption('--name <name>').option('--id <id>')).action(
    async (options: TenantOptions) => {
      const { api, showOne } = open();
      showOne(await api.call('POST', '/tenants', bodyOf(options)));
    },
  );
  const change = async (id: string, body: unknown): Promise<void> => {
    const { api, showOne } = open();
    showOne(await api.call('PATCH', pathTo('tenants', id), body));
  };
  withTerms(tenants.command('update <id>').option('--name <name>')).action(
    (id: string, options: TenantOptions) => change(id, bodyOf(options)),
  );
  tenants.command('suspend <id>').action((id: string) => change(id, { suspended: true }));
  tenants.command('resume <id>').action((id: string) => change(id, { suspended: false }));
}
