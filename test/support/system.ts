import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync, rmSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { portFault } from '../../origin/cli/start/port.ts';
import { newDirectory } from './new-directory.ts';
import { TEST_LIMIT_MS } from './run/time-limits.ts';

/** The whole product as `npm start` runs it: launcher, origin with the built-in model, Worker in workerd. */
export interface System {
  readonly url: string;
  readonly apiKey: string;
  /** Sends JSON in a POST, or a GET without a body, with the development key. */
  request(path: string, body?: unknown, headers?: Readonly<Record<string, string>>): Promise<Response>;
  /** The origin behind the Worker, with the secret that signs requests. */
  readonly origin: { readonly url: string; readonly secret: string };
  /** Address of the origin's metrics and detailed health. */
  readonly metricsUrl: string;
  readonly banner: string;
  readonly stateDirectory: string;
  /** The launcher's own output so far. */
  output(): string;
  /** Returns the log of a child process so far. */
  log(name: 'origin' | 'worker'): string;
  /** Process id of the running origin. */
  originPid(): number;
  /** Sends SIGINT, as Ctrl-C does. Resolves with the launcher's exit code. */
  stop(): Promise<number | null>;
  readonly launcher: ChildProcess;
}

/** A range below the system's ephemeral ports. Each worker process of a test run has its own part. */
const PORTS = { first: 20_000, each: 20, workers: 10, runs: 50 };
let ports = 0;

/** Returns a free port that neither system nor other test processes take before a child listens. */
export async function freePort(): Promise<number> {
  const { first, each, workers, runs } = PORTS;
  // The number of a worker, unlike the id of its process, is another one for each that runs.
  const part = (process.ppid % runs) * workers + (Number(process.env.VITEST_POOL_ID ?? 0) % workers);
  for (;;) {
    const port = first + part * each + (ports++ % each);
    if ((await portFault(port, '127.0.0.1')) === null) return port;
  }
}

/** The command of `npm start`. */
export const START = [
  path.resolve(import.meta.dirname, '../../origin/cli/continuo.js'),
  'serve',
  '--no-open',
];

/** @param command script and arguments; absent: those of `npm start` */
export function launch(
  environment: Readonly<Record<string, string>>,
  command: readonly string[] = START,
): {
  child: ChildProcess;
  output: () => string;
} {
  const child = spawn(process.execPath, command, {
    env: { ...process.env, ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
  }
  return { child, output: () => output };
}

export const exitOf = (child: ChildProcess): Promise<number | null> =>
  child.exitCode === null && child.signalCode === null
    ? new Promise((resolve) => child.once('exit', (code) => resolve(code)))
    : Promise.resolve(child.exitCode);

async function bannerOf(child: ChildProcess, output: () => string): Promise<string> {
  // Slightly below vitest's limit for hooks, so that the error contains the output.
  const deadline = performance.now() + TEST_LIMIT_MS - 5_000;
  while (!output().includes('Ctrl-C stops everything.')) {
    if (child.exitCode !== null) throw new Error(`The launcher ended early:\n${output()}`);
    if (performance.now() > deadline) throw new Error(`Not ready in time:\n${output()}`);
    await sleep(25);
  }
  return output();
}

/**
 * @param stateDirectory owned by the caller and kept for a restart; if absent, a temporary one
 * @param command as in `launch`
 */
export async function startSystem(
  environment: Readonly<Record<string, string>> = {},
  stateDirectory: string | null = null,
  command?: readonly string[],
): Promise<System> {
  const directory = stateDirectory ?? newDirectory();
  const originPort = await freePort();
  const metricsPort = await freePort();
  const variables = {
    CONTINUO_PORT: String(await freePort()),
    CONTINUO_ORIGIN_PORT: String(originPort),
    CONTINUO_METRICS_PORT: String(metricsPort),
    CONTINUO_STATE_DIR: directory,
    ...environment,
  };
  const { child, output } = launch(variables, command);
  const banner = await bannerOf(child, output).catch((error: unknown) => {
    // The caller gets no System that it could stop.
    child.kill('SIGINT');
    throw error;
  });
  const development = readFileSync(path.join(directory, 'development.json'), 'utf8');
  const { originSecret } = JSON.parse(development) as { originSecret: string };
  const log = (name: 'origin' | 'worker') => readFileSync(path.join(directory, `${name}.log`), 'utf8');
  const url = /endpoint {2}(\S+)\/v1/.exec(banner)?.[1] ?? '';
  const apiKey = /key {7}(\S+)/.exec(banner)?.[1] ?? '';
  return {
    url,
    apiKey,
    request: (to, body, headers = {}) =>
      fetch(url + to, {
        headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json', ...headers },
        ...(body !== undefined && {
          method: 'POST',
          body: typeof body === 'string' ? body : JSON.stringify(body),
        }),
      }),
    origin: { url: `http://127.0.0.1:${originPort}`, secret: originSecret },
    metricsUrl: `http://127.0.0.1:${metricsPort}`,
    banner,
    stateDirectory: directory,
    output,
    log,
    originPid: () => Number([...log('origin').matchAll(/"pid":(\d+)/g)].at(-1)?.[1]),
    launcher: child,
    stop: async () => {
      child.kill('SIGINT');
      const code = await exitOf(child);
      if (stateDirectory === null) rmSync(directory, { recursive: true, force: true });
      return code;
    },
  };
}
