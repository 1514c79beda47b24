import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type DecoderInterface, describeDecoder } from './decoder-interface.ts';
import { describeLayout, kvLayout, requireFit } from './kv-cache.ts';
import { type ModelConfig, ModelError, readModelConfig } from './model-config.ts';
import type { ModelRunner, ModelShape } from './model-runner.ts';
import { type OnnxGraph, readGraph } from './onnx-graph.ts';
import { insertLogitsIndex, type PatchedModel } from './onnx-patch.ts';
import { openOrtApi } from './ort-capi.ts';
import { OrtRunner } from './ort-runner.ts';
import { OrtSession } from './ort-session.ts';

/**
 * Tokens of one prefill run. Measured on 2 cores with 8 layers of 512 in 8 bits, prompts of 1,024: chunks of 16, 32, 64
 * and 128 tokens prefill 2,230, 2,700, 3,000 and 3,160 tokens/s, and the last chunk of such a prompt holds running
 * streams up for 8, 14, 24 and 45 ms, where their own step of 8 rows takes 5 ms and of 16 rows 8 ms. 32 keeps 85 to 90 %
 * of the rate and stays near twice a busy batch's step; it is also the grain at which cached prefixes can be reused.
 */
export const DEFAULT_PREFILL_CHUNK = 32;

export interface ModelOptions {
  readonly directory: string;
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

/**
 * Loads a model directory (config.json, generation_config.json, model.onnx) and runs it once. Throws ModelError, a
 * message of one line, when anything is missing, damaged, contradictory or too large.
 */
export async function openModel(options: ModelOptions): Promise<OpenedModel> {
  const { directory } = options;
  const config = readModelConfig(directory);
  const model = readModelFile(directory);
  const graph = inModelFile(() => readGraph(model));
  requireExternalFiles(directory, graph);
  const decoder = describeDecoder(graph, config);
  const contextLength = options.contextLength ?? decoder.maxPositions;
  if (contextLength > decoder.maxPositions) {
    throw new ModelError(
      `context of ${contextLength} positions: the model was made for ${decoder.maxPositions}`,
    );
  }
  const layout = kvLayout(decoder, options.slots, contextLength);
  requireFit(layout, options.kvLimitBytes);
  const patched = inModelFile(() => insertLogitsIndex(model, decoder.logits));
  const session = loadSession(patched, options);
  const prefillChunk = Math.min(options.prefillChunk ?? DEFAULT_PREFILL_CHUNK, contextLength);
  const runner = new OrtRunner(session, { decoder, logits: patched.logits, layout, prefillChunk });
  try {
    await probe(runner);
  } catch (error) {
    runner.dispose();
    throw error;
  }
  return { runner, shape: runner.shape, config, summary: summarise(decoder, describeLayout(layout)) };
}

function readModelFile(directory: string): Uint8Array {
  try {
    return readFileSync(join(directory, 'model.onnx'));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') {
      throw new ModelError(`${directory} has no model.onnx`);
    }
    throw new ModelError(`model.onnx cannot be read: ${(error as Error).message}`);
  }
}

function inModelFile<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw new ModelError(`model.onnx ${(error as Error).message}`);
  }
}

function requireExternalFiles(directory: string, graph: OnnxGraph): void {
  const files = new Set([...graph.initializers.values()].map(({ externalFile }) => externalFile));
  for (const file of files) {
    if (file !== null && !existsSync(join(directory, file))) {
      throw new ModelError(`model.onnx keeps its weights in ${file}, which ${directory} does not have`);
    }
  }
}

function loadSession(patched: PatchedModel, { threads, directory }: ModelOptions): OrtSession {
  try {
    return new OrtSession(openOrtApi(), patched.model, { threads, directory });
  } catch (error) {
    const line = (error as Error).message.replaceAll(/\s+/g, ' ').trim();
    throw new ModelError(`ONNX Runtime cannot load model.onnx: ${line}`);
  }
}

/** One token through slot 0: shows at start what would otherwise fail or spoil the first request. */
async function probe(runner: OrtRunner): Promise<void> {
  const chunk = { slot: 0, start: 0, tokens: Int32Array.of(0), logitsAt: Int32Array.of(0) };
  let logits: Float32Array;
  try {
    logits = await runner.prefill(chunk, new AbortController().signal);
  } catch (error) {
    const line = (error as Error).message.replaceAll(/\s+/g, ' ').trim();
    throw new ModelError(`ONNX Runtime cannot run model.onnx: ${line}`);
  }
  if (!logits.every(Number.isFinite))
    throw new ModelError('model.onnx gives logits that are not finite numbers');
}

function summarise(decoder: DecoderInterface, layout: string): string {
  const { layers, kvHeads, headSize, kvType, vocabularySize } = decoder;
  return (
    `${layers} layers, ${kvHeads} KV heads of ${headSize} in ${kvType}, ` +
    `vocabulary ${vocabularySize}; KV cache ${layout}`
  );
}
