import { withExamples } from '@continuo/origin/terminal/program.ts';
import type { Command } from 'commander';
import { type Filter, queryOf } from './options.ts';
import type { OpenSession } from './session.ts';

const USAGE_COLUMNS = (
  'day tenant model key user ' +
  'requests completed failed cancelled abandoned ' +
  'prompt_tokens cached_tokens completion_tokens cost_micros ' +
  'mean_latency_ms mean_first_token_ms'
).split(' ');

export function addUsageCommand(program: Command, open: OpenSession): void {
  const usage = program
    .command('usage')
    .description('show usage, by default per day and model')
    .option('--from <day>', 'first UTC day, for example 2030-01-01; default: 30 days before the last')
    .option('--to <day>', 'last UTC day, inclusive; default: today')
    .option('--tenant <id>', 'only of this tenant')
    .option('--key <id>', 'only of this key')
    .option('--model <name>', 'only of this model')
    .option('--user <name>', 'only of this end user of the tenant')
    .option('--by <groups>', 'comma-separated: day, tenant, model, key, user');
  withExamples(
    usage,
    'continuo usage --tenant acme --by day,key',
    'continuo usage --from 2030-01-01 --to 2030-01-31 --json',
  ).action(({ by, ...filter }: Filter) =>
    open().list(`/admin/v1/usage${queryOf({ ...filter, group_by: by })}`, USAGE_COLUMNS),
  );
}

const AUDIT_COLUMNS = 'id created_at key address action target tenant changes request_id'.split(' ');

export function addAuditCommand(program: Command, open: OpenSession): void {
  const audit = program
    .command('audit')
    .description('show who changed plans, tenants and keys, new changes first')
    .option('--from <day>', 'first UTC day, for example 2030-01-01; default: 30 days before the last')
    .option('--to <day>', 'last UTC day, inclusive; default: today')
    .option('--tenant <id>', 'only changes of this tenant')
    .option('--key <id>', 'only changes by this key')
    .option('--action <name>', 'only this action, for example revokeKey');
  withExamples(audit, 'continuo audit --tenant acme').action((filter: Filter) =>
    open().list(`/admin/v1/audit${queryOf(filter)}`, AUDIT_COLUMNS),
  );
}
