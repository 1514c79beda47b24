import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import type { DevelopmentState } from './development-state.ts';
import type { Command } from './process-group.ts';
import type { StartSettings } from './settings.ts';

/** What the launcher starts, spelled out: the origin, the database migrations and the local Worker. */

export interface CommandContext {
  /** The repository. */
  readonly root: string;
  readonly stateDirectory: string;
  readonly settings: StartSettings;
  readonly state: DevelopmentState;
  /** Path of a package's file. */
  readonly resolve: (specifier: string) => string;
}

/** wrangler without look-ups, banner and the local tracing that slows Durable Objects. */
const WRANGLER_ENVIRONMENT = {
  CLOUDFLARE_CF_FETCH_ENABLED: 'false',
  WRANGLER_SEND_METRICS: 'false',
  WRANGLER_HIDE_BANNER: 'true',
  X_LOCAL_OBSERVABILITY: 'false',
  CI: 'true',
};

const wrangler = (context: CommandContext): string =>
  path.join(path.dirname(context.resolve('wrangler/package.json')), 'bin', 'wrangler.js');

const localState = (context: CommandContext): string => path.join(context.stateDirectory, 'worker');

export const originCommand = (context: CommandContext): Command => ({
  name: 'origin',
  file: process.execPath,
  args: [path.join(context.root, 'origin', 'main.ts')],
  env: {
    CONTINUO_ORIGIN_HOST: '127.0.0.1',
    CONTINUO_ORIGIN_PORT: String(context.settings.originPort),
    CONTINUO_ORIGIN_SECRET: context.state.originSecret,
  },
  logFile: path.join(context.stateDirectory, 'origin.log'),
});

/** The local database's tables; does nothing when they are up to date. */
export const migrateCommand = (context: CommandContext): Command => ({
  name: 'database migration',
  file: process.execPath,
  args: [
    wrangler(context),
    ...['d1', 'migrations', 'apply', 'DB', '--local', '--persist-to', localState(context)],
    ...['--config', path.join(context.root, 'wrangler.toml')],
  ],
  env: WRANGLER_ENVIRONMENT,
  logFile: path.join(context.stateDirectory, 'worker.log'),
});

/** Variables go through a file: a command line is visible to every user of the machine. */
function writeVariables(context: CommandContext): string {
  const file = path.join(context.stateDirectory, 'worker.vars');
  const keyHash = createHash('sha256').update(context.state.apiKey).digest('hex');
  const variables = {
    ORIGIN_URL: `http://127.0.0.1:${context.settings.originPort}`,
    ORIGIN_SECRET: context.state.originSecret,
    DEVELOPMENT_KEY_SHA256: keyHash,
  };
  const lines = Object.entries(variables).map(([name, value]) => `${name}=${value}\n`);
  writeFileSync(file, lines.join(''), { mode: 0o600 });
  return file;
}

export const edgeCommand = (context: CommandContext): Command => ({
  name: 'worker',
  file: process.execPath,
  args: [
    wrangler(context),
    ...['dev', '--config', path.join(context.root, 'wrangler.toml'), '--env-file', writeVariables(context)],
    ...['--ip', context.settings.host, '--port', String(context.settings.port)],
    ...[
      '--persist-to',
      localState(context),
      '--show-interactive-dev-session',
      'false',
      '--inspector-port',
      '0',
    ],
  ],
  env: WRANGLER_ENVIRONMENT,
  logFile: path.join(context.stateDirectory, 'worker.log'),
});
