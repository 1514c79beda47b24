import {
  type LocalGpu,
  LocalModel,
  type ModelFiles,
  type OrtWasm,
  type OrtWebGpu,
  type WebDevice,
} from '@continuo/origin/local/local-model.ts';
import configUrl from '@continuo/origin/models/continuo-mini/config.json?url';
import provenanceUrl from '@continuo/origin/models/continuo-mini/continuo.json?url';
import graphUrl from '@continuo/origin/models/continuo-mini/model.onnx?url';
import weightsUrl from '@continuo/origin/models/continuo-mini/model.onnx.data?url';
import tokenizerUrl from '@continuo/origin/models/continuo-mini/tokenizer.json?url';
import tokenizerConfigUrl from '@continuo/origin/models/continuo-mini/tokenizer_config.json?url';
import { toHex } from '@continuo/shared/signing.ts';
import gpuWasmUrl from 'onnxruntime-web/ort-wasm-simd-threaded.jspi.wasm?url';
import createModule from 'onnxruntime-web/ort-wasm-simd-threaded.mjs';
import wasmUrl from 'onnxruntime-web/ort-wasm-simd-threaded.wasm?url';
import { GPU_RUNTIME_BYTES, MODEL_BYTES, RUNTIME_BYTES } from '../download-sizes.ts';
import type { FromThread, ToThread } from '../messages.ts';
import { findGpu, nameOf, openDevice } from './find-gpu.ts';
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
const GPU_RUNTIME = { url: gpuWasmUrl, bytes: GPU_RUNTIME_BYTES };

const post = (message: FromThread): void => postMessage(message);
const running = new Map<number, AbortController>();
let local: LocalModel | null = null;
let hash = '';
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

type Opening = Extract<ToThread, { type: 'open' | 'open-built-in' }>;

interface Fetched {
  readonly files: ModelFiles;
  readonly wasm: Uint8Array;
  /** Null = it was not asked for. */
  readonly gpuWasm: Uint8Array | null;
  /** Null = the files are the visitor's. */
  readonly kept: boolean | null;
}

/** Begins with the model's files, of which the server may have none. */
async function fetchAll(message: Opening, withGpu: boolean): Promise<Fetched> {
  const names = message.type === 'open' ? [] : FILES;
  const ofModel = names.map(([name, url]) => ({ url, bytes: MODEL_BYTES[name] }));
  const runtimes = withGpu ? [RUNTIME, GPU_RUNTIME] : [RUNTIME];
  const { contents, kept } = await keptFiles([...ofModel, ...runtimes], onProgress);
  const [wasm, gpuWasm = null] = contents.slice(names.length) as [Uint8Array, Uint8Array?];
  const files = new Map<string, Uint8Array>(names.map(([name], index) => [name, contents[index]!]));
  if (message.type === 'open-built-in') return { files, wasm, gpuWasm, kept };
  for (const [name, file] of message.files) files.set(name, new Uint8Array(await file.arrayBuffer()));
  return { files, wasm, gpuWasm, kept: null };
}

/** Loads the build with WebGPU at its first use. */
const gpuOf = (adapter: GPUAdapter, wasmBinary: Uint8Array, forced: boolean): LocalGpu => ({
  forced,
  open: async () => {
    const { default: create } = await import('onnxruntime-web/ort-wasm-simd-threaded.jspi.mjs');
    const module = (await create({ numThreads: 1, wasmBinary })) as OrtWebGpu;
    return { module, device: await openDevice(adapter) };
  },
  onChange: (device) => {
    fingerprint = fingerprintOf(device);
    post({ type: 'moved', device });
  },
});

async function open(message: Opening): Promise<void> {
  try {
    const forced = message.device === 'webgpu';
    const search = message.device === 'wasm' ? null : await findGpu(forced);
    const adapter = search !== null && 'adapter' in search ? search.adapter : null;
    const { files, wasm, gpuWasm, kept } = await fetchAll(message, adapter !== null);
    const name = message.type === 'open' ? message.name : BUILT_IN;
    const module = (await createModule({ numThreads: 1, wasmBinary: wasm })) as OrtWasm;
    const gpu = adapter && gpuWasm && gpuOf(adapter, gpuWasm, forced);
    local = await LocalModel.open({ name, files, module, turn, gpu });
    hash = await hashOf(files);
    const refusal = search !== null && 'refusal' in search ? search.refusal : null;
    const device = { ...local.device, reason: local.device.reason ?? refusal };
    fingerprint = fingerprintOf(device);
    post({
      type: 'opened',
      name,
      context: local.model.contextLength,
      kept,
      device,
      card: adapter && nameOf(adapter),
    });
  } catch (thrown) {
    post({ type: 'failed', message: thrown instanceof Error ? thrown.message : String(thrown) });
  }
}

/** Devices round otherwise. */
const fingerprintOf = ({ kind }: WebDevice): string => `fp_browser_${kind}_${hash}`;

/** Equal files give equal texts, with equal seeds. Pages from another host over plain HTTP cannot hash. */
async function hashOf(files: ModelFiles): Promise<string> {
  if (!isSecureContext) return 'unknown';
  const all = new Blob([...files.values()].map((content) => new Uint8Array(content)));
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', await all.arrayBuffer()));
  return toHex(digest.subarray(0, 6));
}

async function run({ id, body, dialect }: Extract<ToThread, { type: 'request' }>): Promise<void> {
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
  if (data.type === 'request') void run(data);
  else if (data.type === 'abort') running.get(data.id)?.abort();
  else if (data.type === 'ping') post({ type: 'pong' });
  else void open(data);
});
