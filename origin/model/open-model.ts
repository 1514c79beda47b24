import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type DecoderInterface, describeDecoder } from './decoder-interface.ts';
import { requireExternalWeights } from './external-weights.ts';
import { describeLayout, type KvLayout, kvLayout, requireFit } from './kv-cache.ts';
import { type ModelConfig, ModelError, readModelConfig } from './model-config.ts';
import { findDecoder, type Variant } from './model-files.ts';
import type { ModelRunner, ModelShape } from './model-runner.ts';
import { type OnnxGraph, readGraph } from './onnx-graph.ts';
import { insertLogitsIndex, type PatchedModel } from './onnx-patch.ts';
import { openOrtApi } from './ort-capi.ts';
import { OrtConcatRunner } from './ort-concat-runner.ts';
import { OrtRunner, type RunnerOptions } from './ort-runner.ts';
import { OrtSession } from './ort-session.ts';
import { readsSeveralAfterPast, requireNumbers } from './probe.ts';
import { SingleRowRunner } from './single-row-runner.ts';

/**
 * Tokens of one prefill run. Measured on 2 cores with 8 layers of 512 in 8 bits, prompts of 1,024: chunks of 16, 32, 64
 * and 128 tokens prefill 2,230, 2,700, 3,000 and 3,160 tokens/s, and the last chunk of such a prompt holds running
 * streams up for 8, 14, 24 and 45 ms, where their own step of 8 rows takes 5 ms and of 16 rows 8 ms. 32 keeps 85 to 90 %
 * of the rate and stays near twice a busy batch's step; it is also the grain at which cached prefixes can be reused.
 */
export const DEFAULT_PREFILL_CHUNK = 32;

export interface ModelOptions {
  readonly directory: string;
  /** Of several precisions in the directory; left out, what `findDecoder` finds best. */
  readonly variant?: Variant | undefined;
  readonly slots: number;
  /** Positions of one slot; left out, as many as the model was made for. */
  readonly contextLength?: number | undefined;
  readonly prefillChunk?: number | undefined;
  /** Threads of one run. */
  readonly threads: number;
  /** Memory the KV cache may take; process.availableMemory() where nothing else is configured. */
  readonly kvLimitBytes: number;
}

export interface OpenedModel {
  readonly runner: ModelRunner;
  readonly shape: ModelShape;
  readonly config: ModelConfig;
  /** One line for the log: the model's dimensions and the KV cache's size. */
  readonly summary: string;
}

/** A model directory read and understood, nothing of it loaded. */
export interface ModelPlan {
  readonly config: ModelConfig;
  readonly decoder: DecoderInterface;
  readonly layout: KvLayout;
  /** Path of the graph inside the directory, its bytes, and what they say. */
  readonly file: string;
  readonly model: Uint8Array;
  readonly graph: OnnxGraph;
  /** Of the graph and the files its weights are in. */
  readonly weightBytes: number;
}

/**
 * Reads a model directory: its JSON files and the graph `findDecoder` chooses. Throws ModelError, a message of one line,
 * when anything is missing, contradictory or too large.
 */
export function planModel(options: Omit<ModelOptions, 'threads' | 'prefillChunk'>): ModelPlan {
  const { directory } = options;
  const config = readModelConfig(directory);
  const { file, names } = findDecoder(directory, options.variant);
  const path = join(directory, file);
  const model = readModelFile(path, file);
  const graph = inFile(file, () => readGraph(model));
  const externalBytes = inFile(file, () => requireExternalWeights(path, graph));
  const decoder = inFile(file, () => describeDecoder(graph, config, names));
  const contextLength = options.contextLength ?? decoder.maxPositions;
  if (contextLength > decoder.maxPositions) {
    throw new ModelError(
      `context of ${contextLength} positions: the model was made for ${decoder.maxPositions}`,
    );
  }
  const layout = kvLayout(decoder, options.slots, contextLength);
  requireFit(layout, options.kvLimitBytes);
  return { config, decoder, layout, file, model, graph, weightBytes: model.length + externalBytes };
}

/** Loads a model directory and runs it. Throws ModelError as `planModel` does, and when anything is damaged. */
export async function openModel(options: ModelOptions): Promise<OpenedModel> {
  const { config, decoder, layout, file, model, graph } = planModel(options);
  const selection = logitsSelection(graph, decoder);
  const patched = inFile(file, () => insertLogitsIndex(model, decoder.logits, selection));
  const folder = dirname(join(options.directory, file));
  const session = loadSession(patched, file, { threads: options.threads, directory: folder });
  const prefillChunk = Math.min(options.prefillChunk ?? DEFAULT_PREFILL_CHUNK, layout.contextLength);
  const runner = await start(session, { decoder, logits: patched.logits, layout, prefillChunk }, file);
  const summary = summarise(file, decoder, describeLayout(layout));
  return { runner, shape: runner.shape, config, summary };
}

function readModelFile(path: string, file: string): Uint8Array {
  try {
    return readFileSync(path);
  } catch (error) {
    throw new ModelError(`${file} cannot be read: ${(error as Error).message}`);
  }
}

/** Completes the message of what the graph's readers throw. */
function inFile<T>(file: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw new ModelError(`${file} ${(error as Error).message}`);
  }
}

/** Logits that come out of a branch have no projection to select before. */
function logitsSelection({ nodes }: OnnxGraph, { logits, couplesRows }: DecoderInterface) {
  const source = nodes.find(({ outputs }) => outputs.includes(logits));
  const isBranch = (source?.branches.length ?? 0) > 0;
  return couplesRows || isBranch ? 'after-projection' : 'before-projection';
}

function loadSession(
  patched: PatchedModel,
  file: string,
  options: { readonly threads: number; readonly directory: string },
): OrtSession {
  try {
    return new OrtSession(openOrtApi(), patched.model, options);
  } catch (error) {
    const line = (error as Error).message.replaceAll(/\s+/g, ' ').trim();
    throw new ModelError(`ONNX Runtime cannot load ${file}: ${line}`);
  }
}

/** The runner that fits the graph, tried out. */
async function start(session: OrtSession, options: RunnerOptions, file: string): Promise<ModelRunner> {
  const { cache, couplesRows } = options.decoder;
  const runner =
    cache === 'in-place' ? new OrtRunner(session, options) : new OrtConcatRunner(session, options);
  try {
    await requireNumbers(runner, file);
    if (runner instanceof OrtConcatRunner) {
      runner.severalAfterPast = await readsSeveralAfterPast(runner, file);
    }
  } catch (error) {
    runner.dispose();
    throw error;
  }
  return couplesRows && cache === 'in-place' ? new SingleRowRunner(runner) : runner;
}

function summarise(file: string, decoder: DecoderInterface, layout: string): string {
  const { layers, kvHeads, headSize, kvType, vocabularySize, cache, couplesRows } = decoder;
  const rows = cache === 'concatenated' || couplesRows ? 'rows run one by one; ' : '';
  return (
    `${file}: ${layers} layers, ${kvHeads} KV heads of ${headSize} in ${kvType}, ` +
    `vocabulary ${vocabularySize}; ${rows}KV cache ${layout}`
  );
}
