import { DEFAULT_NAMES, LOGITS_INDEX } from '../config/decoder-names.ts';
import { readModelConfig } from '../config/model-config.ts';
import { inFile, ModelError, type ModelTexts } from '../config/model-json.ts';
import { type DecoderInterface, describeDecoder } from '../decoder/decoder-interface.ts';
import type { ModelRunner } from '../model-runner.ts';
import { withIntegerProducts } from '../onnx/integer-products.ts';
import { type OnnxGraph, readGraph } from '../onnx/onnx-graph.ts';
import { requireFiniteLogits } from '../open/probe.ts';
import { withProbedRows } from '../open/row-probe.ts';
import { type KvLayout, kvLayout } from '../runner/kv-cache.ts';
import { OrtRunner } from '../runner/ort-runner.ts';
import type { AllocateLogits } from '../runner/runner-options.ts';
import { SingleRowRunner } from '../runner/single-row-runner.ts';
import type { WasmRuntime } from './wasm-runtime.ts';
import { WasmSession } from './wasm-session.ts';
import { WebGpuKvCache } from './webgpu-kv-cache.ts';
import { type GpuDevice, type OrtWebGpu, WebGpuSession } from './webgpu-session.ts';
import { WebGpuStates } from './webgpu-states.ts';

/** The graph of a built model. */
export const GRAPH = 'model.onnx';

/** The chunk of a server's CPU, so that prompts have the same splits. */
const PREFILL_CHUNK = 32;
/** Sequences that run together: the choices of one request. */
const SLOTS = 4;
/** A slot of 1 B parameters takes 32 kB per position. */
const MAX_CONTEXT = 4096;

const GIB = 2 ** 30;
/** WebAssembly's memory. */
const MEMORY_GIB = 4;

/** The files of a model in memory, by their names. */
export type ModelFiles = ReadonlyMap<string, Uint8Array>;

/** Returns the text files. @param directory their folder, for messages */
export function textsIn(files: ModelFiles, directory: string): ModelTexts {
  const decoder = new TextDecoder();
  const textOf = (content: Uint8Array | undefined) => content && decoder.decode(content);
  return { directory, read: (file) => textOf(files.get(file)) };
}

interface WebModel {
  readonly model: Uint8Array;
  readonly graph: OnnxGraph;
  readonly decoder: DecoderInterface;
  readonly layout: KvLayout;
}

/** @throws ModelError with one line if a file is missing or contradictory, or was not made for a browser */
function readWebModel(files: ModelFiles, texts: ModelTexts): WebModel {
  const model = files.get(GRAPH);
  if (model === undefined) throw new ModelError(`${texts.directory} has no ${GRAPH}`);
  const config = readModelConfig(texts);
  const graph = inFile(GRAPH, () => readGraph(model));
  const decoder = inFile(GRAPH, () => describeDecoder(graph, config, DEFAULT_NAMES));
  if (!decoder.readsRunInputs || decoder.cache !== 'in-place' || decoder.embeddingSize !== null)
    throw new ModelError(`${GRAPH} was not made by continuo model build, which a browser needs`);
  const layout = kvLayout(decoder, SLOTS, Math.min(MAX_CONTEXT, decoder.maxPositions));
  return { model, graph, decoder, layout };
}

/** A built model in WebAssembly, and the interface of its graph. */
interface WebSession {
  readonly session: WasmSession;
  readonly decoder: DecoderInterface;
  readonly layout: KvLayout;
}

/** @throws ModelError with one line if a file is missing or contradictory, or unfit for a browser */
export async function openWebSession(
  files: ModelFiles,
  texts: ModelTexts,
  runtime: WasmRuntime,
): Promise<WebSession> {
  const { model, graph, decoder, layout } = readWebModel(files, texts);
  const bytes = [...files.values()].reduce((sum, { length }) => sum + length, layout.totalBytes);
  if (bytes > MEMORY_GIB * GIB) {
    const needs = `${(bytes / GIB).toFixed(1)} GiB with a context of ${layout.contextLength} tokens`;
    throw new ModelError(`${texts.directory} needs ${needs}; a browser has ${MEMORY_GIB} GiB`);
  }
  const session = await WasmSession.open(runtime, withIntegerProducts(model, graph, LOGITS_INDEX), files);
  return { session, decoder, layout };
}

/**
 * Opens a model as `openModel` does, in onnxruntime-web's WebAssembly.
 * @throws ModelError with one line if a file is missing, contradictory, or too large
 */
export async function openWebModel(
  files: ModelFiles,
  texts: ModelTexts,
  runtime: WasmRuntime,
  allocateLogits: AllocateLogits,
): Promise<ModelRunner> {
  const { session, decoder, layout } = await openWebSession(files, texts, runtime);
  const { logits } = decoder;
  const runner = new OrtRunner(session, {
    decoder,
    logits,
    layout,
    prefillChunk: PREFILL_CHUNK,
    allocateLogits,
  });
  try {
    await requireFiniteLogits(runner, GRAPH, { place: 'start', chunks: 1 });
    return await withProbedRows(runner, allocateLogits);
  } catch (error) {
    runner.dispose();
    throw error;
  }
}

/**
 * Opens a model on WebGPU, with the slots, context and chunks that it has in WebAssembly. Owns the device.
 * @throws ModelError, or RuntimeFault with ONNX Runtime's message, if it cannot run there
 */
export async function openGpuModel(
  files: ModelFiles,
  texts: ModelTexts,
  runtime: WasmRuntime<OrtWebGpu>,
  device: GpuDevice,
  allocateLogits: AllocateLogits,
): Promise<ModelRunner> {
  const { model, decoder, layout } = readWebModel(files, texts);
  const session = await WebGpuSession.open(runtime, model, files, device);
  try {
    const cache = new WebGpuKvCache(session, decoder, layout);
    const states = new WebGpuStates(session, decoder.states, layout.slots);
    const { logits } = decoder;
    const options = { decoder, logits, layout, prefillChunk: PREFILL_CHUNK, cache, states };
    return new SingleRowRunner(new OrtRunner(session, options), allocateLogits);
  } catch (error) {
    session.dispose();
    throw error;
  }
}
