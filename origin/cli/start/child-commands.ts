import { createHash, createHmac } from 'node:crypto';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Environment } from '@continuo/origin/config/environment.ts';
import type { DevelopmentState } from './development-state.ts';
import type { Command } from './process-group.ts';
import type { StartSettings } from './settings.ts';

/** The commands that the launcher runs: the origin and the local Worker. */

export interface CommandContext {
  readonly environment: Environment;
  readonly stateDirectory: string;
  readonly settings: StartSettings;
  readonly state: DevelopmentState;
}

/** wrangler reads settings from the home directory and fails if it cannot. */
const homeOf = ({ stateDirectory }: CommandContext) => ({
  HOME: stateDirectory,
  XDG_CONFIG_HOME: stateDirectory,
});

export const originCommand = (context: CommandContext): Command => ({
  name: 'origin',
  file: process.execPath,
  args: [fileURLToPath(new URL('./origin-entry.ts', import.meta.url))],
  env: {
    ...context.environment,
    CONTINUO_ORIGIN_HOST: '127.0.0.1',
    CONTINUO_ORIGIN_PORT: String(context.settings.originPort),
    CONTINUO_ORIGIN_SECRET: context.state.originSecret,
    // Ctrl-C does not wait for running streams: they get their error event.
    CONTINUO_DRAIN_SECONDS: '0',
  },
  logFile: path.join(context.stateDirectory, 'origin.log'),
});

export const edgeCommand = (context: CommandContext): Command => ({
  name: 'worker',
  file: process.execPath,
  args: [fileURLToPath(new URL('./edge.ts', import.meta.url))],
  env: {
    ...context.environment,
    ...homeOf(context),
    CONTINUO_HOST: context.settings.host,
    CONTINUO_PORT: String(context.settings.port),
    // Where `wrangler --persist-to` keeps local state, too.
    CONTINUO_WORKER_STATE: path.join(context.stateDirectory, 'worker', 'v3'),
    CONTINUO_ORIGIN_URL: context.settings.originUrl,
    CONTINUO_WORKER_VARS: JSON.stringify({
      ...context.settings.workerVariables,
      ENVIRONMENT: 'development',
      ORIGIN_SECRET: context.state.originSecret,
      DEVELOPMENT_KEY_SHA256: createHash('sha256').update(context.state.apiKey).digest('hex'),
      KEY_ID_SECRET: createHmac('sha256', context.state.originSecret).update('key ids').digest('hex'),
    }),
  },
  logFile: path.join(context.stateDirectory, 'worker.log'),
});
