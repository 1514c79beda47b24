import type { Environment } from '@continuo/origin/config/environment.ts';
import { createResults, type Results } from '@continuo/origin/terminal/tables.ts';
import type { Terminal } from '@continuo/origin/terminal/terminal.ts';
import type { Command } from 'commander';
import { type Access, type AccessOptions, findAccess } from './access.ts';
import { type Api, createApi } from './api.ts';

/** What the program reads and writes. */
export interface CliContext {
  readonly terminal: Terminal;
  readonly environment: Environment;
  readonly fetch: typeof fetch;
}

export interface GlobalOptions extends AccessOptions {
  readonly json: boolean;
}

/** A command's access to the server and to the output. */
export interface Session {
  readonly access: Access;
  readonly api: Api;
  readonly terminal: Terminal;
  readonly json: boolean;
  readonly showList: Results['list'];
  readonly showOne: Results['one'];
}

export type OpenSession = () => Session;

/** Returns a function that reads the global options once they are parsed. @throws CommandError if there is no key */
export const sessionOpener =
  (program: Command, { terminal, environment, fetch }: CliContext, kind: 'admin' | 'caller'): OpenSession =>
  () => {
    const options = program.opts<GlobalOptions>();
    const { list, one } = createResults(terminal, options.json);
    const access = findAccess(options, environment, kind);
    const api = createApi(access, fetch);
    return { access, api, terminal, json: options.json, showList: list, showOne: one };
  };
