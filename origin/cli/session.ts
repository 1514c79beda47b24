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
  readonly results: Results;
  /** Shows all pages of a list of the server. */
  list(path: string, columns: readonly string[]): Promise<void>;
  /** Sends a request and shows the object in the answer. */
  request(...request: Parameters<Api['request']>): Promise<void>;
}

export type OpenSession = () => Session;

/** Makes a reader of the global options once they are parsed. @throws CommandError if there is no key */
export const sessionOpener =
  (program: Command, { terminal, environment, fetch }: CliContext, kind: 'admin' | 'caller'): OpenSession =>
  () => {
    const options = program.opts<GlobalOptions>();
    const results = createResults(terminal, options.json);
    const access = findAccess(options, environment, kind);
    const api = createApi(access, fetch);
    return {
      access,
      api,
      terminal,
      json: options.json,
      results,
      list: async (path, columns) => results.list(await api.list(path), columns),
      request: async (...request) => results.object(await api.request(...request)),
    };
  };
