import { CPU, type DeviceSettings, requireUsedOptions } from '../config/device.ts';
import { type ModelConfig, readModelConfig } from '../config/model-config.ts';
import { findDecoder, type Precision } from '../config/model-files.ts';
import { ModelError } from '../config/model-json.ts';
import { deviceFor, onDevice, thisMachine } from '../device/device-choice.ts';
import type { ModelRunner, ModelShape } from '../model-runner.ts';
import { type GraphFile, inFile, loadSession, readGraphFile } from '../ort/graph-file.ts';
import type { OrtDevice } from '../ort/ort-device.ts';
import { type DecoderInterface, describeDecoder } from '../runner/decoder-interface.ts';
import { describeLayout, type KvLayout, kvLayout, requireFit } from '../runner/kv-cache.ts';
import type { AllocateLogits } from '../runner/runner-options.ts';
import type { ImageEncoder } from '../vision/image-encoder.ts';
import { openVision, planVision, type VisionPlan } from '../vision/vision.ts';
import { patchDecoder } from './patch-decoder.ts';
import { requireGroupQueryAttention, startRunner } from './start-runner.ts';
import { hasVnni, overflowWarning } from './vnni.ts';

/**
 * Tokens of one prefill run, and the granularity of the prefix cache. On 2 cores with 8 layers of 512 in 8 bits and prompts
 * of 1,024 tokens, chunks of 16, 32, 64 and 128 prefill 2,230, 2,700, 3,000 and 3,160 tokens/s and delay running streams by
 * 8, 14, 24 and 45 ms. A decode step of 16 rows takes 8 ms, so 32 is the compromise.
 */
const DEFAULT_PREFILL_CHUNK = 32;

/**
 * From 32 tokens on, ONNX Runtime 1.30 uses another attention shader on WebGPU. It loses keys on adapters with fewer than 32
 * lanes per subgroup.
 */
const MAX_WEBGPU_RUN = 31;

/** Positions of a slot if neither the operator nor the model limits them, as BLOOM was trained with. */
const DEFAULT_CONTEXT = 2048;

export interface ModelOptions {
  readonly directory: string;
  /** Precision to load; absent = the first that `findDecoder` finds. */
  readonly variant?: Precision | undefined;
  readonly slots: number;
  /** Positions of one slot; absent = the model's maximum, or 2,048 if it has none. */
  readonly contextLength?: number | undefined;
  readonly prefillChunk?: number | undefined;
  /** Threads of one run. */
  readonly threads: number;
  /** Absent = the CPU. */
  readonly device?: DeviceSettings | undefined;
  /** Maximum memory of the KV cache; null = the free memory on the CPU, or what the device allocates. */
  readonly kvLimitBytes: number | null;
}

export interface OpenedModel {
  readonly runner: ModelRunner;
  /** Null if the model does not accept images. Dispose it together with the runner. */
  readonly images: ImageEncoder | null;
  readonly shape: ModelShape;
  /** One line for the log: the model's dimensions and the KV cache's size. */
  readonly summary: string;
  /** One line: why no GPU is used, and what this machine computes wrongly; null if there is nothing to report. */
  readonly warning: string | null;
}

/** A model directory, read and checked but not loaded. */
export interface ModelPlan extends GraphFile {
  readonly config: ModelConfig;
  readonly decoder: DecoderInterface;
  readonly layout: KvLayout;
  /** Null if the model does not accept images. */
  readonly vision: VisionPlan | null;
}

/**
 * Reads a model directory: its JSON files and the graph that `findDecoder` chooses.
 * @throws ModelError with one line if anything is missing, contradictory, too large or unused
 */
export function planModel(options: Omit<ModelOptions, 'threads' | 'prefillChunk'>): ModelPlan {
  const { directory, device = CPU } = options;
  requireUsedOptions(device);
  const config = readModelConfig(directory);
  const { file, names } = findDecoder(directory, options.variant);
  const graphFile = readGraphFile(directory, file);
  const decoder = inFile(file, () => describeDecoder(graphFile.graph, config, names));
  const contextLength = options.contextLength ?? defaultContext(decoder);
  if (contextLength > decoder.maxPositions) {
    throw new ModelError(`context of ${contextLength} positions: the model supports ${decoder.maxPositions}`);
  }
  const layout = kvLayout(decoder, options.slots, contextLength);
  requireFit(layout, options.kvLimitBytes ?? Infinity);
  const vision = planVision(directory, { file, decoder, config });
  const weightBytes = graphFile.weightBytes + (vision?.weightBytes ?? 0);
  return { ...graphFile, config, decoder, layout, vision, weightBytes };
}

const defaultContext = ({ maxPositions }: DecoderInterface): number =>
  maxPositions === Infinity ? DEFAULT_CONTEXT : maxPositions;

/**
 * Loads and probes a model directory.
 * @throws ModelError as `planModel`, and if a file is damaged
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
  const { decoder, layout, file, model, vision } = plan;
  const { threads } = options;
  if (device.provider === 'cpu') {
    // The graph is in memory already; its external weights are still to be loaded into the free memory.
    const beside = plan.weightBytes - model.length;
    if (options.kvLimitBytes === null) requireFit(layout, process.availableMemory() - beside, beside);
    else requireFit(layout, options.kvLimitBytes);
  } else requireGroupQueryAttention(decoder, file);
  const patched = inFile(file, () => patchDecoder(plan, decoder, device.provider));
  const prefillChunk = Math.min(
    options.prefillChunk ?? DEFAULT_PREFILL_CHUNK,
    layout.contextLength,
    device.provider === 'webgpu' ? MAX_WEBGPU_RUN : Infinity,
  );
  const capacity = Math.max(options.slots, prefillChunk);
  const parts = vision === null ? null : openVision(vision, { ...plan, threads, capacity });
  const embedder = parts?.embedder ?? null;
  const images = parts?.encoder ?? null;
  try {
    const session = loadSession(plan, patched.model, {
      threads,
      device: deviceFor(patched.graph, device, thisMachine()),
    });
    const runnerOptions = { decoder, logits: patched.logits, layout, prefillChunk, embedder, allocateLogits };
    const runner = await startRunner(session, runnerOptions, { file, graph: patched.graph });
    const where = device.provider === 'cpu' ? '' : ` on ${device.provider}`;
    const summary = summaryOf(file, decoder, describeLayout(layout) + where, images);
    return { runner, images, shape: runner.shape, summary };
  } catch (error) {
    images?.dispose();
    embedder?.dispose();
    throw error;
  }
}

function summaryOf(
  file: string,
  decoder: DecoderInterface,
  layout: string,
  images: ImageEncoder | null,
): string {
  const { layers, kvHeads, headSize, kvType, vocabularySize, cache, couplesRows } = decoder;
  const rows = cache === 'concatenated' || couplesRows ? 'one row per run; ' : '';
  const seen =
    images === null ? '' : `images of ${images.width} × ${images.height} in ${images.positions} positions; `;
  return (
    `${file}: ${layers} layers, ${kvHeads} KV heads of ${headSize} in ${kvType}, ` +
    `vocabulary ${vocabularySize}; ${seen}${rows}KV cache ${layout}`
  );
}
