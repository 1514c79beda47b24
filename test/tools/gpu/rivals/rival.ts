import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../../../support/system.ts';
import { openAiTarget, type Target } from '../../bench/target.ts';

/** Servers of others that are measured beside the origin, on the same card and by the same client. */

export interface ServerSetting {
  /** The folder that `assemble` has filled. */
  readonly files: string;
  /** A model of the benchmarks. */
  readonly directory: string;
  readonly contextLength: number;
  /** Requests at a time. */
  readonly streams: number;
  /** A Python with torch and transformers. */
  readonly python: string;
}

export interface Command {
  readonly program: string;
  readonly args: readonly string[];
  readonly environment: NodeJS.ProcessEnv;
}

export interface Rival {
  /**
   * Fills a directory with all that the server needs beside the machine's Python, from public packages of
   * fixed versions and checksums.
   * @param architecture of the card; 90 = Hopper
   */
  readonly assemble: (directory: string, architecture: number) => Promise<void>;
  /**
   * Returns the command of a server that has OpenAI's completions at http://127.0.0.1:PORT/v1, with prompts
   * of token ids, under the name `bench`. It answers 200 at /health once it is ready. If it cannot read the
   * model, this writes one of the same sizes first.
   */
  readonly server: (setting: ServerSetting, port: number) => Command;
  /** Lines of its log that say what it runs with, such as its attention and its memory. */
  readonly notable: RegExp;
  /** Whether each request opens a connection, because the server closes those that are kept. */
  readonly reconnects?: boolean;
}

export const SERVED_NAME = 'bench';
/** Longest start: kernels are compiled. */
const START_MS = 240_000;
const POLL_MS = 250;
/** Time to end after SIGTERM. */
const GRACE_MS = 10_000;
/** Characters at the end of a log that an error has. */
const LOG_END = 8000;

/** What `use` gets beside the target. */
export interface Started {
  readonly seconds: number;
  /** Returns the notable lines of its log so far. */
  readonly notes: () => string;
}

const hasEnded = ({ exitCode, signalCode }: ChildProcess) => exitCode !== null || signalCode !== null;

/**
 * Starts a rival's server, and stops it after its use.
 * @throws Error with the end of the server's log if it dies or does not get ready, or if `use` fails
 */
export async function withRival<T>(
  { server, notable, reconnects = false }: Omit<Rival, 'assemble'>,
  setting: ServerSetting,
  use: (target: Target, started: Started) => Promise<T>,
  startMs = START_MS,
): Promise<T> {
  const port = await freePort();
  const { program, args, environment } = server(setting, port);
  // Not a group of its own, so that the limit of a stage also ends the server.
  const env = { ...process.env, ...environment };
  const child = spawn(program, args, { env, stdio: ['ignore', 'pipe', 'pipe'] });
  let log = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => {
      log += text;
    });
  const closed = once(child, 'close').catch((error: Error) => {
    log += error.message;
  });
  const begun = performance.now();
  try {
    await untilReady(child, `http://127.0.0.1:${port}/health`, startMs);
    const notes = () =>
      log
        .split('\n')
        .filter((line) => notable.test(line))
        .join('\n');
    const target = openAiTarget(program, {
      baseUrl: `http://127.0.0.1:${port}/v1`,
      apiKey: 'none',
      model: SERVED_NAME,
      reconnects,
    });
    const used = await use(target, { seconds: (performance.now() - begun) / 1000, notes });
    await target.close();
    if (hasEnded(child)) throw new Error('The server ended while it was measured');
    return used;
  } catch (error) {
    // Its end, and what it wrote last, may still be on their way.
    await Promise.race([closed, sleep(1000)]);
    const code = child.exitCode ?? child.signalCode ?? 'none';
    throw new Error(`${(error as Error).message}. Exit code: ${code}. Its log:\n${log.slice(-LOG_END)}`);
  } finally {
    await stop(child, closed);
  }
}

async function untilReady(child: ChildProcess, url: string, ms: number): Promise<void> {
  for (const end = performance.now() + ms; performance.now() < end; await sleep(POLL_MS)) {
    if (child.pid === undefined || hasEnded(child)) throw new Error('The server ended before it was ready');
    const answers = fetch(url, { signal: AbortSignal.timeout(2000) });
    if (await answers.then(({ ok }) => ok).catch(() => false)) return;
  }
  throw new Error(`The server was not ready within ${ms / 1000} s`);
}

async function stop(child: ChildProcess, closed: Promise<unknown>): Promise<void> {
  child.kill('SIGTERM');
  const timer = setTimeout(() => child.kill('SIGKILL'), GRACE_MS);
  await Promise.race([closed, sleep(GRACE_MS + 1000, undefined, { ref: false })]);
  clearTimeout(timer);
  child.stdout?.destroy();
  child.stderr?.destroy();
}
