import { LocalModel, type ModelFiles, type OrtWasm } from '@continuo/origin/local/local-model.ts';
import configUrl from '@continuo/origin/models/continuo-mini/config.json?url';
import provenanceUrl from '@continuo/origin/models/continuo-mini/continuo.json?url';
import graphUrl from '@continuo/origin/models/continuo-mini/model.onnx?url';
import weightsUrl from '@continuo/origin/models/continuo-mini/model.onnx.data?url';
import tokenizerUrl from '@continuo/origin/models/continuo-mini/tokenizer.json?url';
import tokenizerConfigUrl from '@continuo/origin/models/continuo-mini/tokenizer_config.json?url';
import { toHex } from '@continuo/shared/signing.ts';
import createModule from 'onnxruntime-web/ort-wasm-simd-threaded.mjs';
import wasmUrl from 'onnxruntime-web/ort-wasm-simd-threaded.wasm?url';
import { MODEL_BYTES, RUNTIME_BYTES } from '../download-sizes.ts';
import type { FromThread, ToThread } from '../messages.ts';
import { keptFiles } from './kept-files.ts';
import { respond } from './local-response.ts';

/** Entry of the thread that runs a model in the browser. */

const BUILT_IN = 'continuo-mini';
const FILES = [
  ['config.json', configUrl],
  ['continuo.json', provenanceUrl],
  ['tokenizer_config.json', tokenizerConfigUrl],
  ['tokenizer.json', tokenizerUrl],
  ['model.onnx', graphUrl],
  ['model.onnx.data', weightsUrl],
] as const;
const RUNTIME = { url: wasmUrl, bytes: RUNTIME_BYTES };

const post = (message: FromThread): void => postMessage(message);
const running = new Map<number, AbortController>();
let local: LocalModel | null = null;
let fingerprint = '';

/** Lets messages in between two steps. A timer would wait for 4 ms. */
const channel = new MessageChannel();
const turns: (() => void)[] = [];
channel.port1.onmessage = () => turns.shift()?.();
const turn = (): Promise<void> =>
  new Promise((resolve) => {
    turns.push(resolve);
    channel.port2.postMessage(null);
  });

const onProgress = (loaded: number, total: number) => post({ type: 'progress', loaded, total });

interface Fetched {
  readonly files: ModelFiles;
  readonly wasm: Uint8Array;
  /** Null = the files are the visitor's. */
  readonly kept: boolean | null;
}

/** Begins with the model's files, of which the server may have none. */
async function builtIn(): Promise<Fetched> {
  const wanted = [...FILES.map(([name, url]) => ({ url, bytes: MODEL_BYTES[name] })), RUNTIME];
  const { contents, kept } = await keptFiles(wanted, onProgress);
  const files = new Map(FILES.map(([name], index) => [name as string, contents[index]!]));
  return { files, wasm: contents.at(-1)!, kept };
}

async function ofVisitor(given: ReadonlyMap<string, File>): Promise<Fetched> {
  const { contents } = await keptFiles([RUNTIME], onProgress);
  const files = new Map<string, Uint8Array>();
  for (const [name, file] of given) files.set(name, new Uint8Array(await file.arrayBuffer()));
  return { files, wasm: contents[0]!, kept: null };
}

async function open(message: Extract<ToThread, { type: 'open' | 'open-built-in' }>): Promise<void> {
  try {
    const isOwn = message.type === 'open';
    const { files, wasm, kept } = isOwn ? await ofVisitor(message.files) : await builtIn();
    const name = isOwn ? message.name : BUILT_IN;
    const options = { numThreads: 1, wasmBinary: wasm };
    const module = (await createModule(options)) as OrtWasm;
    local = await LocalModel.open(name, files, module, turn);
    fingerprint = `fp_browser_${await hashOf(files)}`;
    post({
      type: 'opened',
      name,
      context: local.model.contextLength,
      kept,
    });
  } catch (thrown) {
    post({ type: 'failed', message: thrown instanceof Error ? thrown.message : String(thrown) });
  }
}

/** Equal files give equal texts, with equal seeds. Pages from another host over plain HTTP cannot hash. */
async function hashOf(files: ModelFiles): Promise<string> {
  if (!isSecureContext) return 'unknown';
  const all = new Blob([...files.values()].map((content) => new Uint8Array(content)));
  const hash = new Uint8Array(await crypto.subtle.digest('SHA-256', await all.arrayBuffer()));
  return toHex(hash.subarray(0, 6));
}

async function answer({ id, body, dialect }: Extract<ToThread, { type: 'request' }>): Promise<void> {
  const controller = new AbortController();
  running.set(id, controller);
  const parts = {
    head: (status: number, contentType: string) => post({ type: 'head', id, status, contentType }),
    text: (text: string) => text !== '' && post({ type: 'text', id, text }),
  };
  await respond(local!, { body, dialect, fingerprint }, parts, controller.signal);
  running.delete(id);
  post({ type: 'end', id });
}

addEventListener('message', ({ data }: MessageEvent<ToThread>) => {
  if (data.type === 'request') void answer(data);
  else if (data.type === 'abort') running.get(data.id)?.abort();
  else if (data.type === 'ping') post({ type: 'pong' });
  else void open(data);
});
