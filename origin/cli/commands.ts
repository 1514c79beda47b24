import { commaList, requireOption, withExamples } from '@continuo/origin/terminal/program.ts';
import { dialectName } from '@continuo/shared/tenant.ts';
import type { Command } from 'commander';
import {
  type AliasOption,
  collectAlias,
  collectLimit,
  duration,
  type Filter,
  instant,
  LIMIT_HELP,
  type LimitOption,
  pathTo,
  positive,
  queryOf,
} from './options.ts';
import type { OpenSession } from './session.ts';

/** Options with other names than their fields of the body. The others are sent as they are. */
interface PlanOptions {
  readonly limit?: LimitOption;
}

interface TenantOptions extends PlanOptions {
  readonly plan?: string;
  readonly openObjects?: boolean;
  readonly anyKeyOrder?: boolean;
  readonly waitForTokens?: boolean;
  readonly alias?: AliasOption;
}

// JSON leaves out the fields that were not given.
const planFields = ({ limit, ...rest }: PlanOptions) => ({ ...rest, limits: limit });

const tenantFields = ({ plan, openObjects, anyKeyOrder, waitForTokens, alias, ...rest }: TenantOptions) => ({
  ...planFields(rest),
  plan: plan === 'none' ? null : plan,
  open_objects: openObjects,
  any_key_order: anyKeyOrder,
  wait_for_tokens: waitForTokens,
  aliases: alias,
});

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
    .option(
      '--alias <name=model>',
      'own name of a model, repeatable, for example davinci-002=org/tiny; =none removes it',
      collectAlias,
    )
    .option('--dialect <name>', `default dialect: ${dialectName.options.join(', ')}`)
    .option('--open-objects', 'objects of JSON Schemas may have undeclared properties by default')
    .option('--no-open-objects', 'they may not')
    .option('--any-key-order', 'properties come in any order by default')
    .option('--no-any-key-order', 'they come in the declared order')
    .option('--wait-for-tokens', 'completions wait at the end of tokens_per_minute')
    .option('--no-wait-for-tokens', "they end with finish_reason 'length'");

export function addPlanCommands(program: Command, open: OpenSession): void {
  const plans = program.command('plans').description('manage limits that tenants share');
  const list = plans.command('list').description('list the plans');
  withExamples(list, 'continuo plans list').action(() =>
    open().list('/admin/v1/plans', ['id', 'name', 'limits', 'weight', 'created_at']),
  );
  const create = plans.command('create').description('create a plan');
  requireOption(create, '--id <id>', 'id of the plan');
  requireOption(create, '--name <name>', 'name for people');
  withExamples(
    withPlanOptions(create),
    'continuo plans create --id small --name Small --limit requests_per_minute=60',
  ).action((options: PlanOptions) => open().request('POST', '/admin/v1/plans', planFields(options)));
  const update = plans
    .command('update <id>')
    .description('change a plan')
    .option('--name <name>', 'new name');
  withExamples(withPlanOptions(update), 'continuo plans update small --limit tokens_per_day=100000').action(
    (id: string, options: PlanOptions) => open().request('PATCH', pathTo('plans', id), planFields(options)),
  );
}

const TENANT_COLUMNS = [
  ...['id', 'name', 'plan', 'limits', 'weight', 'dialect', 'open_objects', 'any_key_order'],
  ...['wait_for_tokens', 'aliases', 'suspended', 'created_at'],
];

export function addTenantCommands(program: Command, open: OpenSession): void {
  const tenants = program.command('tenants').description('manage tenants, the holders of API keys');
  const list = tenants.command('list').description('list the tenants');
  withExamples(list, 'continuo tenants list').action(() => open().list('/admin/v1/tenants', TENANT_COLUMNS));
  const show = tenants.command('show <id>').description('show a tenant');
  withExamples(show, 'continuo tenants show acme').action((id: string) =>
    open().request('GET', pathTo('tenants', id)),
  );
  const create = tenants.command('create').description('create a tenant');
  requireOption(create, '--name <name>', 'name for people');
  withExamples(
    withTenantOptions(create.option('--id <id>', 'id; default: a random one')),
    'continuo tenants create --id acme --name Acme --plan small',
  ).action((options: TenantOptions) => open().request('POST', '/admin/v1/tenants', tenantFields(options)));
  const change = (id: string, body: unknown) => open().request('PATCH', pathTo('tenants', id), body);
  const update = tenants
    .command('update <id>')
    .description('change a tenant')
    .option('--name <name>', 'new name');
  withExamples(
    withTenantOptions(update),
    'continuo tenants update acme --limit requests_per_minute=plan --dialect vllm',
  ).action((id: string, options: TenantOptions) => change(id, tenantFields(options)));
  const erase = tenants
    .command('delete <id>')
    .description('erase a suspended tenant with its keys, files and usage')
    .option('--usage <keep|erase>', 'keep (default): sums by month and model stay; erase: nothing stays');
  withExamples(erase, 'continuo tenants delete acme').action((id: string, filter: Filter) =>
    open().request('DELETE', pathTo('tenants', id) + queryOf(filter)),
  );
  const suspend = tenants.command('suspend <id>').description('refuse all requests of a tenant');
  withExamples(suspend, 'continuo tenants suspend acme').action((id: string) =>
    change(id, { suspended: true }),
  );
  const resume = tenants.command('resume <id>').description('accept the requests of a suspended tenant');
  withExamples(resume, 'continuo tenants resume acme').action((id: string) =>
    change(id, { suspended: false }),
  );
}

const KEY_COLUMNS = [
  ...['id', 'tenant', 'name', 'scopes', 'role', 'models', 'limits', 'expires_at', 'last_used_at'],
  ...['disabled', 'revoked_at'],
];

interface KeyOptions extends PlanOptions {
  readonly expires?: number;
  readonly allow?: string[];
}

export function addKeyCommands(program: Command, open: OpenSession): void {
  const keys = program.command('keys').description('manage API keys');
  const list = keys
    .command('list')
    .description('list the keys')
    .option('--tenant <id>', 'only of this tenant');
  withExamples(list, 'continuo keys list --tenant acme').action((filter: Filter) =>
    open().list(`/admin/v1/keys${queryOf(filter)}`, KEY_COLUMNS),
  );
  const show = keys.command('show <id>').description('show the settings of a key, not the key');
  withExamples(show, 'continuo keys show KEY_ID').action((id: string) =>
    open().request('GET', pathTo('keys', id)),
  );
  const create = keys.command('create').description('create a key; the key is shown only here');
  requireOption(create, '--tenant <id>', 'tenant that holds the key');
  requireOption(create, '--name <name>', 'name for people');
  withExamples(
    create
      .option('--scopes <list>', 'completions,models or keys or admin', commaList)
      .option('--role <role>', 'of an admin key: owner, billing, read-only or tenant:ID')
      .option('--models <list>', 'models that the key may use; default: all', commaList)
      .option('--limit <name=value>', `repeatable; ${LIMIT_HELP}`, collectLimit)
      .option('--allow <list>', 'networks from which the key may be used; default: all', commaList)
      .option('--expires <date>', 'for example 2030-01-31; default: never', instant),
    'continuo keys create --tenant acme --name production --expires 2030-01-31',
    'continuo keys create --tenant operator --name alice --scopes admin --role read-only',
  ).action(({ limit, expires, allow, ...rest }: KeyOptions) => {
    const body = { ...rest, limits: limit, expires_at: expires, allowed_addresses: allow };
    return open().request('POST', '/admin/v1/keys', body);
  });
  const rotate = keys
    .command('rotate <id>')
    .description('create a new key with the same settings; the old key works until the overlap ends')
    .option('--overlap <duration>', 'for example 24h', duration);
  withExamples(rotate, 'continuo keys rotate KEY_ID --overlap 1h').action(
    (id: string, { overlap }: { overlap?: number }) =>
      open().request('POST', `${pathTo('keys', id)}/rotate`, { overlap_seconds: overlap }),
  );
  const revoke = keys.command('revoke <id>').description('end a key now');
  withExamples(revoke, 'continuo keys revoke KEY_ID').action((id: string) =>
    open().request('DELETE', pathTo('keys', id)),
  );
}
