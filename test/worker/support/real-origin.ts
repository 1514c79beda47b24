import type { ChildProcess } from 'node:child_process';
import { rmSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { OriginProcess } from '../../origin/http/origin-process.ts';
import { newDirectory } from '../../support/new-directory.ts';
import { writeByteTokenizer } from '../../support/synthetic/byte-tokenizer.ts';
import { writeSyntheticModel } from '../../support/synthetic/synthetic-model.ts';
import { SECRET } from './fake-origin.ts';
import { type Chunk, type Completion, chunksOf } from './sse.ts';
import { type RunningWorker, startWorker } from './worker.ts';

const ROOT = path.resolve(import.meta.dirname, '../../..');

/** Token ids of the synthetic model: the bytes, pairs of letters, BOS and EOS. */
export const VOCABULARY = 320;
export const BEGIN = VOCABULARY - 2;
export const END = VOCABULARY - 1;
export const CONTEXT = 512;

/** Maximum number of tries of a request that gets 503. */
const ATTEMPTS = 4;

type Fields = Readonly<Record<string, unknown>>;

/** The Worker in workerd, and the origin as a process with a random fp32 model of two layers. */
export interface RealSystem {
  readonly worker: RunningWorker;
  readonly origin: string;
  readonly modelDirectory: string;
  /** Sends a POST and, like clients, retries a 503. */
  post(fields: Fields): Promise<Response>;
  complete(fields: Fields): Promise<Completion>;
  stream(fields: Fields): Promise<Chunk[]>;
  stop(): Promise<void>;
}

/** Writes the synthetic model into a new directory. */
export function writeRealModel(): string {
  const modelDirectory = newDirectory();
  writeSyntheticModel(modelDirectory, { vocabulary: VOCABULARY, contextLength: CONTEXT });
  writeByteTokenizer(modelDirectory, VOCABULARY);
  return modelDirectory;
}

/**
 * Starts an origin process. Resolves once its model is loaded.
 * @param port 0 = any free port
 * @param root checkout that it runs from
 */
export async function spawnOrigin(
  modelDirectory: string,
  port = 0,
  root = ROOT,
): Promise<{ readonly child: ChildProcess; readonly url: string }> {
  const environment = {
    CONTINUO_ORIGIN_SECRET: SECRET,
    CONTINUO_ORIGIN_PORT: String(port),
    CONTINUO_MODEL_DIR: modelDirectory,
    CONTINUO_THREADS: '1',
  };
  const origin = new OriginProcess(environment, root);
  await origin.line(/KV cache/);
  return { child: origin.child, url: `http://127.0.0.1:${(await origin.line('listening')).port}` };
}

/**
 * @param prepare changes the model directory before it is loaded
 * @param vars further variables of the Worker
 */
export async function startRealSystem(
  prepare: (directory: string) => void = () => {},
  vars: Readonly<Record<string, string>> = {},
): Promise<RealSystem> {
  const modelDirectory = writeRealModel();
  prepare(modelDirectory);
  const { child, url: origin } = await spawnOrigin(modelDirectory);
  const worker = await startWorker({ url: origin, secret: SECRET }, { MODELS_TTL_MS: '60000', ...vars });
  const post = async (fields: Fields): Promise<Response> => {
    for (let attempt = 1; ; attempt += 1) {
      const response = await worker.post({ model: 'default', ...fields });
      if (response.status !== 503 || attempt === ATTEMPTS) return response;
      await sleep(1_000 * Number(response.headers.get('retry-after')));
    }
  };
  const ask = async (fields: Fields): Promise<string> => {
    const response = await post(fields);
    const text = await response.text();
    if (response.status !== 200) throw new Error(`${response.status} ${text}`);
    return text;
  };
  return {
    worker,
    origin,
    modelDirectory,
    post,
    complete: async (fields) => JSON.parse(await ask(fields)) as Completion,
    stream: async (fields) => chunksOf(await ask({ ...fields, stream: true })),
    stop: async () => {
      await worker.stop();
      child.kill('SIGKILL');
      rmSync(modelDirectory, { recursive: true, force: true });
    },
  };
}
