import type { Command } from 'commander';
import { dialectName } from '../../shared/tenant.ts';
import {
  collectLimit,
  commaList,
  duration,
  given,
  instant,
  LIMIT_HELP,
  type LimitOption,
  pathTo,
  positive,
  queryOf,
} from './options.ts';
import type { OpenSession } from './session.ts';

interface PlanOptions {
  readonly id?: string;
  readonly name?: string;
  readonly limit?: LimitOption;
  readonly weight?: number;
}

interface TenantOptions extends PlanOptions {
  readonly plan?: string;
  readonly dialect?: string;
}

const planFields = ({ limit, ...rest }: PlanOptions) => given({ ...rest, limits: limit });

const tenantFields = ({ plan, ...rest }: TenantOptions) =>
  given({ ...planFields(rest), plan: plan === 'none' ? null : plan });

const withWeight = (command: Command): Command =>
  command.option('--weight <number>', 'share of an origin relative to other tenants', positive);

const withPlanOptions = (command: Command): Command =>
  withWeight(
    command.option(
      '--limit <name=value>',
      `repeatable, for example tokens_per_day=100000; ${LIMIT_HELP}`,
      collectLimit,
    ),
  );

const withTenantOptions = (command: Command): Command =>
  withWeight(command.option('--plan <id>', 'plan whose limits apply; none = no plan'))
    .option(
      '--limit <name=value>',
      `own limit, repeatable, for example requests_per_minute=60; =none removes it, =plan follows the plan again; ${LIMIT_HELP}`,
      collectLimit,
    )
    .option('--dialect <name>', `default dialect: ${dialectName.options.join(', ')}`);

export function addPlanCommands(program: Command, open: OpenSession): void {
  const plans = program.command('plans').description('manage limits that tenants share');
  plans.command('list').action(async () => {
    const { api, showList } = open();
    showList(await api.list('/plans'), ['id', 'name', 'limits', 'weight', 'created_at']);
  });
  const create = plans.command('create').requiredOption('--id <id>').requiredOption('--name <name>');
  withPlanOptions(create).action(async (options: PlanOptions) => {
    const { api, showOne } = open();
    showOne(await api.call('POST', '/plans', planFields(options)));
  });
  const update = plans.command('update <id>').option('--name <name>');
  withPlanOptions(update).action(async (id: string, options: PlanOptions) => {
    const { api, showOne } = open();
    showOne(await api.call('PATCH', pathTo('plans', id), planFields(options)));
  });
}

const TENANT_COLUMNS = ['id', 'name', 'plan', 'limits', 'weight', 'dialect', 'suspended', 'created_at'];

export function addTenantCommands(program: Command, open: OpenSession): void {
  const tenants = program.command('tenants').description('manage tenants, the holders of API keys');
  tenants.command('list').action(async () => {
    const { api, showList } = open();
    showList(await api.list('/tenants'), TENANT_COLUMNS);
  });
  tenants.command('show <id>').action(async (id: string) => {
    const { api, showOne } = open();
    showOne(await api.call('GET', pathTo('tenants', id)));
  });
  const create = tenants.command('create').requiredOption('--name <name>').option('--id <id>');
  withTenantOptions(create).action(async (options: TenantOptions) => {
    const { api, showOne } = open();
    showOne(await api.call('POST', '/tenants', tenantFields(options)));
  });
  const change = async (id: string, body: unknown): Promise<void> => {
    const { api, showOne } = open();
    showOne(await api.call('PATCH', pathTo('tenants', id), body));
  };
  withTenantOptions(tenants.command('update <id>').option('--name <name>')).action(
    (id: string, options: TenantOptions) => change(id, tenantFields(options)),
  );
  tenants.command('suspend <id>').action((id: string) => change(id, { suspended: true }));
  tenants.command('resume <id>').action((id: string) => change(id, { suspended: false }));
}

const KEY_COLUMNS = ['id', 'tenant', 'name', 'scopes', 'models', 'limits', 'expires_at', 'revoked_at'];

interface KeyOptions {
  readonly tenant: string;
  readonly name: string;
  readonly scopes?: string[];
  readonly models?: string[];
  readonly limit?: LimitOption;
  readonly expires?: number;
}

export function addKeyCommands(program: Command, open: OpenSession): void {
  const keys = program.command('keys').description('manage API keys');
  keys
    .command('list')
    .option('--tenant <id>')
    .action(async ({ tenant }: { tenant?: string }) => {
      const { api, showList } = open();
      showList(await api.list(`/keys${queryOf({ tenant })}`), KEY_COLUMNS);
    });
  keys.command('show <id>').action(async (id: string) => {
    const { api, showOne } = open();
    showOne(await api.call('GET', pathTo('keys', id)));
  });
  keys
    .command('create')
    .description('create a key; the key is shown only here')
    .requiredOption('--tenant <id>')
    .requiredOption('--name <name>')
    .option('--scopes <list>', 'completions,models or admin', commaList)
    .option('--models <list>', 'models that the key may use; default: all', commaList)
    .option('--limit <name=value>', `repeatable; ${LIMIT_HELP}`, collectLimit)
    .option('--expires <date>', 'for example 2030-01-31', instant)
    .action(async ({ limit, expires, ...rest }: KeyOptions) => {
      const { api, showOne } = open();
      showOne(await api.call('POST', '/keys', given({ ...rest, limits: limit, expires_at: expires })));
    });
  keys
    .command('rotate <id>')
    .description('create a new key with the same settings; the old key works until the overlap ends')
    .option('--overlap <duration>', 'for example 24h', duration)
    .action(async (id: string, { overlap }: { overlap?: number }) => {
      const { api, showOne } = open();
      showOne(await api.call('POST', `${pathTo('keys', id)}/rotate`, given({ overlap_seconds: overlap })));
    });
  keys.command('revoke <id>').action(async (id: string) => {
    const { api, showOne } = open();
    showOne(await api.call('DELETE', pathTo('keys', id)));
  });
}

const USAGE_COLUMNS = [
  ...['day', 'tenant', 'model', 'key'],
  ...['requests', 'completed', 'failed', 'cancelled', 'abandoned'],
  ...['prompt_tokens', 'cached_tokens', 'completion_tokens'],
  ...['mean_latency_ms', 'mean_first_token_ms'],
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
    .description('show usage, by default per day and model')
    .option('--from <day>', 'first UTC day, for example 2030-01-01; default: 30 days before the last')
    .option('--to <day>', 'last UTC day, inclusive; default: today')
    .option('--tenant <id>')
    .option('--key <id>')
    .option('--model <name>')
    .option('--by <groups>', 'comma-separated: day, tenant, model, key')
    .action(async ({ by, ...filter }: UsageOptions) => {
      const { api, showList } = open();
      showList(await api.list(`/usage${queryOf({ ...filter, group_by: by })}`), USAGE_COLUMNS);
    });
}
