import { Command } from 'commander';
import { createAdminApi, readAddress } from './api.ts';
import { addKeyCommands, addPlanCommands, addTenantCommands, addUsageCommand } from './commands.ts';
import { createSession, type OpenSession } from './session.ts';

/** Dependencies of the program: address, key, network and output. */
export interface AdminEnvironment {
  readonly url: string;
  /** Returns the admin key for an address. @throws CommandError if there is none */
  readonly keyFor: (url: URL) => string;
  readonly fetch: typeof fetch;
  readonly print: (text: string) => void;
  readonly printError: (text: string) => void;
}

/** Creates the program `admin`; `parseAsync` runs it. */
export function createAdminProgram({ url, keyFor, fetch, print, printError }: AdminEnvironment): Command {
  const program = new Command('admin')
    .description('Manage tenants, API keys, plans and usage of a Continuo deployment.')
    .option('--url <address>', 'address of the Worker (CONTINUO_URL)', url)
    .option('--json', 'print JSON instead of tables', false)
    .exitOverride()
    .configureOutput({
      writeOut: (text) => print(text.trimEnd()),
      writeErr: (text) => printError(text.trimEnd()),
    });
  const open: OpenSession = () => {
    const options = program.opts<{ url: string; json: boolean }>();
    const address = readAddress(options.url);
    return createSession(createAdminApi({ url: address, key: keyFor(address), fetch }), print, options.json);
  };
  addTenantCommands(program, open);
  addKeyCommands(program, open);
  addPlanCommands(program, open);
  addUsageCommand(program, open);
  return program;
}
