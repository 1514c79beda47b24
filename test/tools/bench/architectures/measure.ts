import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { freePort } from '../../../support/system.ts';
import { median } from '../statistics.ts';
import { PUBLISHED, type PublishedModel } from './published.ts';
import { writeRandomCheckpoint } from './random-checkpoint.ts';

/** Measures `continuo serve DIRECTORY` at published sizes: its start to the first token, and decoding. */

const COMMAND = fileURLToPath(new URL('../../../../origin/cli/main.ts', import.meta.url));

export const ARCHITECTURES: readonly string[] = PUBLISHED.map(({ name }) => name);

export interface ArchitectureFigures {
  readonly name: string;
  readonly parameters: number;
  readonly buildSeconds: number;
  /** Of weights read. */
  readonly bytesPerSecond: number;
  /** Peak of the process when the build had ended. */
  readonly buildPeakBytes: number;
  /** Build, check, start of the servers and one token. */
  readonly firstTokenSeconds: number;
  /** Of all streams together, without their prompts, by number of streams. */
  readonly tokensPerSecond: Readonly<Record<number, number>>;
}

const STREAMS = [1, 4];
const DECODED_TOKENS = 64;
/** The median of these is taken. */
const ROUNDS = 3;

export async function measureArchitecture(name: string): Promise<ArchitectureFigures> {
  const model = PUBLISHED.find((one) => one.name === name)!;
  const folder = path.join(tmpdir(), 'continuo-bench-architectures');
  try {
    const bytes = await writeRandomCheckpoint(path.join(folder, 'model'), model);
    return await measureServe(model, folder, bytes);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function measureServe(
  { name }: PublishedModel,
  folder: string,
  bytes: number,
): Promise<ArchitectureFigures> {
  const [port, originPort] = [await freePort(), await freePort()];
  const start = performance.now();
  const seconds = () => (performance.now() - start) / 1000;
  const child = spawn(process.execPath, [COMMAND, 'serve', path.join(folder, 'model'), '--no-open'], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      ...process.env,
      CONTINUO_PORT: `${port}`,
      CONTINUO_ORIGIN_PORT: `${originPort}`,
      XDG_CACHE_HOME: path.join(folder, 'cache'),
      CONTINUO_STATE_DIR: path.join(folder, 'state'),
    },
  });
  const ended = once(child, 'close');
  try {
    await textOf(child.stderr, / is built: /, ended);
    const [buildSeconds, buildPeakBytes] = [seconds(), peakBytes(child.pid!)];
    const [, key] = await textOf(child.stdout, /Bearer (\S+?)"/, ended);
    const complete = async (tokens: number) => {
      const response = await fetch(`http://127.0.0.1:${port}/v1/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        body: JSON.stringify({
          model: 'default',
          prompt: 'Once upon a time',
          max_tokens: tokens,
          ignore_eos: true,
        }),
      });
      if (!response.ok) throw new Error(`${name}: ${response.status} ${await response.text()}`);
      await response.text();
    };
    await complete(1);
    const firstTokenSeconds = seconds();
    const rates = await decodeRates(complete);
    const figures = { buildSeconds, buildPeakBytes, firstTokenSeconds, tokensPerSecond: rates };
    return { name, parameters: bytes / 2, bytesPerSecond: bytes / buildSeconds, ...figures };
  } finally {
    child.kill();
    await ended;
  }
}

async function decodeRates(complete: (tokens: number) => Promise<void>): Promise<Record<number, number>> {
  const secondsOf = async (streams: number, tokens: number) => {
    const start = performance.now();
    await Promise.all(Array.from({ length: streams }, () => complete(tokens)));
    return (performance.now() - start) / 1000;
  };
  const rates: Record<number, number> = {};
  for (const streams of STREAMS) {
    const rounds: number[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      const first = await secondsOf(streams, 1);
      rounds.push((await secondsOf(streams, 1 + DECODED_TOKENS)) - first);
    }
    rates[streams] = (streams * DECODED_TOKENS) / median(rounds);
  }
  return rates;
}

/** Collects text until it matches. */
async function textOf(stream: NodeJS.ReadableStream, pattern: RegExp, ended: Promise<unknown>) {
  let text = '';
  const found = Promise.withResolvers<RegExpExecArray>();
  stream.setEncoding('utf8').on('data', (part: string) => {
    text += part;
    const match = pattern.exec(text);
    if (match !== null) found.resolve(match);
  });
  void ended.then(() => found.reject(new Error(`the command ended: ${text}`)));
  return await found.promise;
}

/** Largest resident set so far; Linux only. */
const peakBytes = (pid: number): number =>
  1024 * Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]);
