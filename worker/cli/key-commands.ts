import type { Command } from 'commander';
import {
  collectLimit,
  commaList,
  duration,
  given,
  instant,
  LIMIT_NAMES,
  type LimitOption,
  pathTo,
  queryOf,
} from './options.ts';
import type { OpenSession } from './program.ts';

const COLUMNS = ['id', 'tenant', 'name', 'scopes', 'models', 'limits', 'expires_at', 'revoked_at'];

interface KeyOptions {
  readonly tenant: string;
  readonly name: string;
  readonly scopes?: string[];
  readonly models?: string[];
  readonly limit?: LimitOption;
  readonly expires?: number;
}

export function addKeyCommands(program: Command, open: OpenSession): void {
  const keys = program.command('keys').description('what callers present');
  const path = (id: string): string => pathTo('keys', id);
  keys
    .command('list')
    .option('--tenant <id>')
    .action(async ({ tenant }: { tenant?: string }) => {
      const { api, showList } = open();
      showList(await api.list(`/keys${queryOf({ tenant })}`), COLUMNS);
    });
  keys.command('show <id>').action(async (id: string) => {
    const { api, showOne } = open();
    showOne(await api.call('GET', path(id)));
  });
  keys
    .command('create')
    .description('the key itself is shown here and never again')
    .requiredOption('--tenant <id>')
    .requiredOption('--name <name>')
    .option('--scopes <list>', 'completions,models or admin', commaList)
    .option('--models <list>', 'models it may use; all without this', commaList)
    .option('--limit <name=value>', `repeatable; ${LIMIT_NAMES}`, collectLimit)
    .option('--expires <date>', 'e.g. 2030-01-31', instant)
    .action(async ({ limit, expires, ...rest }: KeyOptions) => {
      const { api, showOne } = open();
      showOne(await api.call('POST', '/keys', given({ ...rest, limits: limit, expires_at: expires })));
    });
  keys
    .command('rotate <id>')
    .description('a new key with the same terms; the old one works on for the overlap')
    .option('--overlap <duration>', 'e.g. 24h', duration)
    .action(async (id: string, { overlap }: { overlap?: number }) => {
      const { api, showOne } = open();
      showOne(await api.call('POST', `${path(id)}/rotate`, given({ overlap_seconds: overlap })));
    });
  keys.command('revoke <id>').action(async (id: string) => {
    const { api, showOne } = open();
    showOne(await api.call('DELETE', path(id)));
  });
}
