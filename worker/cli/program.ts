import { Command } from 'commander';
import { type AdminApi, type AdminObject, createAdminApi, readAddress } from './api.ts';
import { addKeyCommands } from './key-commands.ts';
import { addPlanCommands } from './plan-commands.ts';
import { cardOf, tableOf } from './table.ts';
import { addTenantCommands } from './tenant-commands.ts';
import { addUsageCommand } from './usage-command.ts';

/** What the commands take from outside. */
export interface Surroundings {
  readonly url: string;
  /** The admin key to use for an address. @throws CommandError when there is none */
  readonly keyFor: (url: URL) => string;
  readonly fetch: typeof fetch;
  readonly print: (text: string) => void;
  readonly printError: (text: string) => void;
}

/** What a command works with: the API, and the ways of showing its answers. */
export interface Session {
  readonly api: AdminApi;
  showList(rows: readonly AdminObject[], columns: readonly string[]): void;
  showOne(object: AdminObject): void;
}

export type OpenSession = () => Session;

/** The program `admin`; `parseAsync` runs it. */
export function createProgram(surroundings: Surroundings): Command {
  const { print, printError } = surroundings;
  const program = new Command('admin')
    .description('Manage tenants, keys, plans and usage of a Continuo deployment.')
    .option('--url <address>', 'the Worker (CONTINUO_URL)', surroundings.url)
    .option('--json', 'print JSON instead of tables', false)
    .exitOverride()
    .configureOutput({
      writeOut: (text) => print(text.trimEnd()),
      writeErr: (text) => printError(text.trimEnd()),
    });
  const open: OpenSession = () => {
    const { url, json } = program.opts<{ url: string; json: boolean }>();
    const address = readAddress(url);
    const asJson = (value: unknown): void => print(JSON.stringify(value, null, 2));
    return {
      api: createAdminApi({ url: address, key: surroundings.keyFor(address), fetch: surroundings.fetch }),
      showList: (rows, columns) => (json ? asJson(rows) : print(tableOf(rows, columns))),
      showOne: (object) => (json ? asJson(object) : print(cardOf(object))),
    };
  };
  addTenantCommands(program, open);
  addKeyCommands(program, open);
  addPlanCommands(program, open);
  addUsageCommand(program, open);
  return program;
}
