import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, rmSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { PUBLISHED, type PublishedModel } from './published.ts';
import { writeRandomCheckpoint } from './random-checkpoint.ts';

/** Measures `continuo serve DIRECTORY` from its start to the first token at published sizes. */

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
}

export async function measureArchitecture(name: string): Promise<ArchitectureFigures> {
  const model = PUBLISHED.find((one) => one.name === name)!;
  const folder = path.join(tmpdir(), 'continuo-bench-architectures');
  try {
    const bytes = await writeRandomCheckpoint(path.join(folder, name), model);
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
  const child = spawn(process.execPath, [COMMAND, 'serve', path.join(folder, name), '--no-open'], {
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
    const response = await fetch(`http://127.0.0.1:${port}/v1/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'default', prompt: 'Once upon a time', max_tokens: 1 }),
    });
    if (!response.ok) throw new Error(`${name}: ${response.status} ${await response.text()}`);
    await response.text();
    const figures = { buildSeconds, buildPeakBytes, firstTokenSeconds: seconds() };
    return { name, parameters: bytes / 2, bytesPerSecond: bytes / buildSeconds, ...figures };
  } finally {
    child.kill();
    await ended;
  }
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

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  return port;
}
