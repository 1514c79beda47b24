import { createHmac, hash, randomBytes } from 'node:crypto';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { requireKnownVariables } from '@continuo/origin/config/config.ts';
import type { Environment } from '@continuo/origin/config/environment.ts';
import type { ChildExit } from '@continuo/origin/process/supervised-child.ts';
import { errorMessage } from '@continuo/shared/error-details.ts';
import { type DevelopmentState, developmentState } from './development-state.ts';
import { stateDirectory as stateDirectoryOf } from './installation.ts';
import { serveTogether } from './origins-together.ts';
import { OutputLog } from './output-log.ts';
import type { PageLink } from './page-key.ts';
import { portFault } from './port.ts';
import { type Command, startCommand } from './process-group.ts';
import { untilReady } from './readiness.ts';
import { type LocalOrigin, readStartSettings, type StartSettings } from './settings.ts';
import { lockStateDirectory } from './state-lock.ts';

/** Time for the Worker to become ready. The origin may take as long as its models take to load. */
const READY_WITHIN_MS = 60_000;
const STOP_GRACE_MS = 10_000;
const NPM_POLL_MS = 500;

async function refuseUnusablePorts({ host, port, origins, metricsPort }: StartSettings): Promise<void> {
  const metricsPorts = [metricsPort, ...origins.map((origin) => origin.metricsPort)];
  const usedPorts = metricsPorts.filter((number) => number !== null);
  for (const [variable, number, address] of [
    ['CONTINUO_PORT', port, host],
    ...origins.map((origin) => ['CONTINUO_ORIGIN_PORT', origin.port, '127.0.0.1'] as const),
    ...usedPorts.map((number) => ['CONTINUO_METRICS_PORT', number, '127.0.0.1'] as const),
  ] as const) {
    const fault = await portFault(number, address);
    if (fault === 'EADDRINUSE') {
      throw new Error(`Port ${number} on ${address} is in use; set ${variable} to a free one.`);
    }
    if (fault !== null) throw new Error(`Cannot listen on port ${number} of ${address} (${fault}).`);
  }
}

interface CommandContext {
  readonly environment: Environment;
  readonly stateDirectory: string;
  readonly settings: StartSettings;
  readonly state: DevelopmentState;
  readonly pageLink: PageLink;
}

function commandOf(name: string, entry: URL, stateDirectory: string, env: Environment): Command {
  const log = new OutputLog(path.join(stateDirectory, `${name}.log`));
  return { name, file: process.execPath, args: [fileURLToPath(entry)], env, log };
}

const originCommand = (
  { environment, stateDirectory, state }: CommandContext,
  { name, port, variables }: LocalOrigin,
): Command =>
  commandOf(name, new URL('./origin-entry.ts', import.meta.url), stateDirectory, {
    ...environment,
    ...variables,
    CONTINUO_ORIGIN_HOST: '127.0.0.1',
    CONTINUO_ORIGIN_PORT: String(port),
    CONTINUO_ORIGIN_SECRET: state.originSecret,
    // Ctrl-C does not wait for running streams: they get their error event.
    CONTINUO_DRAIN_SECONDS: '0',
  });

const derivedSecret = ({ originSecret }: DevelopmentState, purpose: string): string =>
  createHmac('sha256', originSecret).update(purpose).digest('hex');

const edgeCommand = ({ environment, stateDirectory, settings, state, pageLink }: CommandContext): Command =>
  commandOf('worker', new URL('./edge.ts', import.meta.url), stateDirectory, {
    ...environment,
    // wrangler reads settings from the home directory and fails if it cannot.
    HOME: stateDirectory,
    XDG_CONFIG_HOME: stateDirectory,
    CONTINUO_HOST: settings.host,
    CONTINUO_PORT: String(settings.port),
    // Where `wrangler --persist-to` keeps local state, too.
    CONTINUO_WORKER_STATE: path.join(stateDirectory, 'worker', 'v3'),
    CONTINUO_ORIGINS: JSON.stringify(settings.origins.map(({ name, url }) => ({ name, url }))),
    CONTINUO_PAGE_LINK: JSON.stringify(pageLink),
    CONTINUO_WORKER_VARS: JSON.stringify({
      WEBHOOK_SECRET: derivedSecret(state, 'webhooks'),
      // One host has few tenants, whose usage can be in the summary soon.
      USAGE_REPORT_MS: '5000',
      ...settings.workerVariables,
      ENVIRONMENT: 'development',
      ORIGIN_SECRET: state.originSecret,
      DEVELOPMENT_KEY_SHA256: hash('sha256', state.apiKey),
      KEY_ID_SECRET: derivedSecret(state, 'key ids'),
    }),
  });

/** A child failed to start. Its log has the reason once everything has stopped. */
class StartFailure extends Error {
  readonly log: OutputLog;

  constructor({ name, log }: Command, fault: string) {
    super(`The ${name} ${fault}:`);
    this.log = log;
  }
}

/**
 * Resolves when the process that started this one is gone, if that was npm. A signal to npm alone ends the
 * shell between the two, and this process would run on. Without npm, it never resolves: a process may outlive
 * the shell that started it.
 */
async function untilNpmIsGone(): Promise<void> {
  await new Promise<void>((resolve) => {
    const parent = process.ppid;
    if (process.env.npm_lifecycle_event === undefined) return;
    const timer = setInterval(() => {
      if (process.ppid === parent) return;
      clearInterval(timer);
      resolve();
    }, NPM_POLL_MS).unref();
  });
}

/** What the launcher reports when a completion would work. */
export interface Ready {
  /** The endpoint's address. */
  readonly url: string;
  readonly apiKey: string;
  /** The page takes it for the key, once. */
  readonly pageCode: string;
  readonly stateDirectory: string;
}

interface Ending {
  readonly onEnd: (exit: ChildExit) => void;
  readonly graceMs: number;
}

/** Starts an origin for each card. `ready` resolves when it serves for the first time. */
const startOrigins = (context: CommandContext, endingOf: (command: Command) => Ending) =>
  context.settings.origins.map((origin) => {
    const command = originCommand(context, origin);
    const ready = Promise.withResolvers<void>();
    const child = startCommand(command, {
      ...endingOf(command),
      untilReady: (over) =>
        untilReady(`${origin.url}/health`, Number.POSITIVE_INFINITY, over).then(ready.resolve),
      onRestart: ({ code, signal }) =>
        console.error(`The ${origin.name} died (${signal ?? code}) and is restarted.`),
      // The others serve on.
      persists: context.settings.origins.length > 1,
    });
    return { child, ready: ready.promise };
  });

/**
 * Starts the origins and a local Worker, waits until a completion would work, and stops everything on a
 * signal.
 * @param environment variables of all processes
 */
async function run(environment: Environment, onReady: (ready: Ready) => void): Promise<void> {
  requireKnownVariables(environment);
  const settings = readStartSettings(environment);
  const stateDirectory = stateDirectoryOf(environment);
  // Also for the children, because the local database stores prompts and completions for replay.
  process.umask(0o077);
  using _lock = lockStateDirectory(stateDirectory, 'CONTINUO_STATE_DIR');
  await refuseUnusablePorts(settings);
  const state = developmentState(stateDirectory);
  const pageLink = { code: randomBytes(16).toString('base64url'), key: state.apiKey };
  const context = { environment, stateDirectory, settings, state, pageLink };

  const { metricsPort } = settings;
  await using _metrics = metricsPort === null ? null : await serveTogether(metricsPort, settings.origins);
  const edge = edgeCommand(context);

  const stopRequested = new Promise<'signal'>((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
      process.once(signal, () => resolve('signal'));
    void untilNpmIsGone().then(() => resolve('signal'));
  });
  const stopping = new AbortController();
  const died = Promise.withResolvers<never>();
  const endingOf = (command: Command): Ending => ({
    onEnd: ({ error }) => died.reject(error ?? new StartFailure(command, 'stopped')),
    graceMs: STOP_GRACE_MS,
  });
  const origins = startOrigins(context, endingOf);
  const edgeChild = startCommand(edge, endingOf(edge));
  const edgeReady = untilReady(`${settings.url}/health`, READY_WITHIN_MS, stopping.signal).catch(
    (why: unknown) => {
      throw new StartFailure(edge, errorMessage(why));
    },
  );
  const ready = Promise.all([edgeReady, ...origins.map((origin) => origin.ready)]);
  // These also settle during the stop, when nothing awaits them.
  for (const promise of [died.promise, ready]) promise.catch(() => undefined);

  try {
    const first = await Promise.race([ready, died.promise, stopRequested]);
    if (first !== 'signal') {
      onReady({ url: settings.url, apiKey: state.apiKey, pageCode: pageLink.code, stateDirectory });
      await Promise.race([died.promise, stopRequested]);
    }
  } finally {
    stopping.abort();
    // The Worker ends the running streams with an error event once the origins have ended them.
    await Promise.all(origins.map(({ child }) => child.close()));
    await edgeChild.close();
  }
}

/**
 * Runs the local system until a signal.
 * @throws Error that says what failed, with the last lines of the child's log
 */
export async function launch(environment: Environment, onReady: (ready: Ready) => void): Promise<void> {
  try {
    await run(environment, onReady);
  } catch (error) {
    if (!(error instanceof StartFailure)) throw error;
    throw new Error(`${error.message}\n${error.log.lastLines()}`);
  }
}
