import { CPU, type DeviceSettings, requireMeaning } from '../config/device.ts';
import { type ModelConfig, readModelConfig } from '../config/model-config.ts';
import { findDecoder, type Precision } from '../config/model-files.ts';
import { ModelError } from '../config/model-json.ts';
import { onDevice, thisMachine } from '../device/device-choice.ts';
import type { ModelRunner, ModelShape } from '../model-runner.ts';
import { packAttention } from '../onnx/attention-packing.ts';
import type { OnnxGraph } from '../onnx/onnx-graph.ts';
import { graphFields, insertLogitsIndex, withGraph } from '../onnx/onnx-patch.ts';
import { type GraphFile, inFile, loadSession, readGraphFile } from '../ort/graph-file.ts';
import type { OrtDevice } from '../ort/ort-device.ts';
import { type DecoderInterface, describeDecoder } from '../runner/decoder-interface.ts';
import { describeLayout, type KvLayout, kvLayout, requireFit } from '../runner/kv-cache.ts';
import type { AllocateLogits } from '../runner/runner-options.ts';
import type { ImageEncoder } from '../vision/image-encoder.ts';
import { openVision, planVision, type VisionPlan } from '../vision/vision.ts';
import { requireGroupQueryAttention, startRunner } from './start-runner.ts';
import { hasVnni, overflowWarning } from './vnni.ts';

/**
 * Tokens of one prefill run. Measured on 2 cores with 8 layers of 512 in 8 bits, prompts of 1,024: chunks of 16, 32, 64
 * and 128 tokens prefill 2,230, 2,700, 3,000 and 3,160 tokens/s, and the last chunk of such a prompt holds running
 * streams up for 8, 14, 24 and 45 ms, where their own step of 8 rows takes 5 ms and of 16 rows 8 ms. 32 keeps 85 to 90 %
 * of the rate and stays near twice a busy batch's step; it is also the grain at which cached prefixes can be reused.
 */
const DEFAULT_PREFILL_CHUNK = 32;

/**
 * From 32 tokens on ONNX Runtime 1.30 attends by another shader on WebGPU, which loses keys where a subgroup has fewer than 32
 * lanes: seen with 4, 8 and 16, and GPUs with so few exist.
 */
const LONGEST_WEBGPU_RUN = 31;

export interface ModelOptions {
  readonly directory: string;
  /** Of several precisions in the directory; left out, what `findDecoder` finds best. */
  readonly variant?: Precision | undefined;
  readonly slots: number;
  /** Positions of one slot; left out, as many as the model was made for. */
  readonly contextLength?: number | undefined;
  readonly prefillChunk?: number | undefined;
  /** Threads of one run. */
  readonly threads: number;
  /** The CPU when absent. */
  readonly device?: DeviceSettings | undefined;
  /** Memory the KV cache may take; null = what is free on the CPU, and what a device grants. */
  readonly kvLimitBytes: number | null;
}

export interface OpenedModel {
  readonly runner: ModelRunner;
  /** Null when the model sees no images; to be disposed of along with the runner. */
  readonly images: ImageEncoder | null;
  readonly shape: ModelShape;
  /** One line for the log: the model's dimensions and the KV cache's size. */
  readonly summary: string;
  /** One line: why no GPU is used, where one was looked for, and what this machine computes badly; null if all is well. */
  readonly warning: string | null;
}

/** A model directory read and understood, nothing of it loaded. */
export interface ModelPlan extends GraphFile {
  readonly config: ModelConfig;
  readonly decoder: DecoderInterface;
  readonly layout: KvLayout;
  /** Null when the model sees no images. */
  readonly vision: VisionPlan | null;
}

/**
 * Reads a model directory: its JSON files and the graph `findDecoder` chooses.
 * @throws ModelError, a message of one line, when anything is missing, contradictory, too large or set in vain
 */
export function planModel(options: Omit<ModelOptions, 'threads' | 'prefillChunk'>): ModelPlan {
  const { directory, device = CPU } = options;
  requireMeaning(device);
  const config = readModelConfig(directory);
  const { file, names } = findDecoder(directory, options.variant);
  const graphFile = readGraphFile(directory, file);
  const decoder = inFile(file, () => describeDecoder(graphFile.graph, config, names));
  const contextLength = options.contextLength ?? decoder.maxPositions;
  if (contextLength > decoder.maxPositions) {
    throw new ModelError(
      `context of ${contextLength} positions: the model was made for ${decoder.maxPositions}`,
    );
  }
  const layout = kvLayout(decoder, options.slots, contextLength);
  requireFit(layout, options.kvLimitBytes ?? Infinity);
  const vision = planVision(directory, { file, decoder, config });
  const weightBytes = graphFile.weightBytes + (vision?.weightBytes ?? 0);
  return { ...graphFile, config, decoder, layout, vision, weightBytes };
}

/**
 * Loads a model directory and runs it.
 * @throws ModelError as `planModel` does, and when anything is damaged
 */
export async function openModel(
  options: ModelOptions,
  allocateLogits?: AllocateLogits,
): Promise<OpenedModel> {
  const { device = CPU } = options;
  const plan = planModel(options);
  const { opened, warning } = await onDevice(device, thisMachine(), (chosen) =>
    open(plan, options, chosen, allocateLogits),
  );
  const warnings = [warning, overflowWarning(plan.decoder, hasVnni())].filter((line) => line !== null);
  return { ...opened, warning: warnings.join('; ') || null };
}

async function open(
  plan: ModelPlan,
  options: ModelOptions,
  device: OrtDevice,
  allocateLogits: AllocateLogits | undefined,
): Promise<Omit<OpenedModel, 'warning'>> {
  const { decoder, layout, file, model, graph, vision } = plan;
  const { threads } = options;
  if (device.provider === 'cpu') {
    // The graph's file has been read; what is beside it is still to be loaded, out of what is free now.
    const beside = plan.weightBytes - model.length;
    if (options.kvLimitBytes === null) requireFit(layout, process.availableMemory() - beside, beside);
    else requireFit(layout, options.kvLimitBytes);
  } else requireGroupQueryAttention(decoder, file);
  const selection = logitsSelection(graph, decoder);
  const patched = inFile(file, () => {
    const fields = graphFields(model);
    const packed = device.provider === 'cpu' ? packAttention(fields) : fields;
    const { fields: patched, logits } = insertLogitsIndex(packed, decoder.logits, selection);
    return { model: withGraph(model, patched), logits };
  });
  const prefillChunk = Math.min(
    options.prefillChunk ?? DEFAULT_PREFILL_CHUNK,
    layout.contextLength,
    device.provider === 'webgpu' ? LONGEST_WEBGPU_RUN : Infinity,
  );
  const capacity = Math.max(options.slots, prefillChunk);
  const parts = vision === null ? null : openVision(vision, { ...plan, threads, capacity });
  const embedder = parts?.embedder ?? null;
  const images = parts?.encoder ?? null;
  try {
    const session = loadSession(plan, patched.model, { threads, device });
    const runnerOptions = { decoder, logits: patched.logits, layout, prefillChunk, embedder, allocateLogits };
    const runner = await startRunner(session, runnerOptions, plan);
    const where = device.provider === 'cpu' ? '' : ` on ${device.provider}`;
    const summary = summarise(file, decoder, describeLayout(layout) + where, images);
    return { runner, images, shape: runner.shape, summary };
  } catch (error) {
    images?.dispose();
    embedder?.dispose();
    throw error;
  }
}

/** Logits that come out of a branch have no projection to select before. */
function logitsSelection({ nodes }: OnnxGraph, { logits, couplesRows }: DecoderInterface) {
  const source = nodes.find(({ outputs }) => outputs.includes(logits));
  const isBranch = (source?.branches.length ?? 0) > 0;
  return couplesRows || isBranch ? 'after-projection' : 'before-projection';
}

function summarise(
  file: string,
  decoder: DecoderInterface,
  layout: string,
  images: ImageEncoder | null,
): string {
  const { layers, kvHeads, headSize, kvType, vocabularySize, cache, couplesRows } = decoder;
  const rows = cache === 'concatenated' || couplesRows ? 'rows run one by one; ' : '';
  const seen =
    images === null ? '' : `images of ${images.width} × ${images.height} in ${images.positions} positions; `;
  return (
    `${file}: ${layers} layers, ${kvHeads} KV heads of ${headSize} in ${kvType}, ` +
    `vocabulary ${vocabularySize}; ${seen}${rows}KV cache ${layout}`
  );
}
