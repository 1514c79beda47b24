import { CPU, type DeviceSettings, hasDeviceOptions, requireUsedOptions } from '../config/device.ts';
import { type ModelConfig, readModelConfig } from '../config/model-config.ts';
import { textsOf } from '../config/model-directory.ts';
import { findDecoder, type Precision } from '../config/model-files.ts';
import { inFile, ModelError } from '../config/model-json.ts';
import { type DecoderInterface, describeDecoder } from '../decoder/decoder-interface.ts';
import { type GraphFile, readGraphFile } from '../ort/graph-file.ts';
import { type KvLayout, kvLayout, maxAutomaticSlots, requireFit } from '../runner/kv-cache.ts';
import { planVision, type VisionPlan } from '../vision/vision.ts';
import { defaultContext } from './default-context.ts';
import { freeBytes, prefillChunkOf } from './run-limits.ts';
import { runBytes } from './run-memory.ts';

export interface ModelOptions {
  readonly directory: string;
  /** Precision to load; absent = the first that `findDecoder` finds. */
  readonly variant?: Precision | undefined;
  readonly slots: number;
  /** Whether more slots are chosen later, for the context that this gives. */
  readonly slotsMayGrow?: boolean | undefined;
  /** Positions of one slot; absent = as `defaultContext`. */
  readonly contextLength?: number | undefined;
  readonly prefillChunk?: number | undefined;
  /** Threads of one run. */
  readonly threads: number;
  /** Absent = the CPU. */
  readonly device?: DeviceSettings | undefined;
  /** Of `createEngineLocks`: lets several engines use a device. Absent = no other engine does. */
  readonly engineLocks?: SharedArrayBuffer | undefined;
  /** Maximum memory of the KV cache; null = the free memory on the CPU, or what the device allocates. */
  readonly kvLimitBytes: number | null;
}

/** A model directory, read and checked but not loaded. */
export interface ModelPlan extends GraphFile {
  readonly config: ModelConfig;
  readonly decoder: DecoderInterface;
  readonly layout: KvLayout;
  /** One line: why a default context is shorter than the model allows; else null. */
  readonly contextNote: string | null;
  /** Most slots that are chosen automatically. */
  readonly maxSlots: number;
  /** Memory of runs on a CUDA card, apart from weights and KV cache; 0 for other providers. */
  readonly runBytes: number;
  /** Null if the model does not accept images. */
  readonly vision: VisionPlan | null;
}

/**
 * Reads a model directory: its JSON files and the graph that `findDecoder` chooses.
 * @param free returns the free memory of a device
 * @throws ModelError with one line if anything is missing, contradictory, too large or unused
 */
export function planModel(
  options: Omit<ModelOptions, 'threads'>,
  free: typeof freeBytes = freeBytes,
): ModelPlan {
  const { directory, device = CPU } = options;
  requireUsedOptions(device);
  const config = readModelConfig(textsOf(directory));
  const { file, names } = findDecoder(directory, options.variant);
  const graphFile = readGraphFile(directory, file);
  const decoder = inFile(file, () => describeDecoder(graphFile.graph, config, names));
  const vision = planVision(directory, { file, decoder, config });
  const weightBytes = graphFile.weightBytes + (vision?.weightBytes ?? 0);
  const chunk = options.prefillChunk ?? prefillChunkOf('cuda', () => []);
  const { graph } = graphFile;
  const maxSlots = maxAutomaticSlots(decoder, device.provider);
  const rows = options.slotsMayGrow ? maxSlots : options.slots;
  const runs = hasDeviceOptions(device.provider) ? runBytes(decoder, rows, chunk, graph) : 0;
  const { contextLength, note: contextNote } = contextOf(options, decoder, weightBytes + runs, free);
  if (contextLength > decoder.maxPositions) {
    throw new ModelError(`context of ${contextLength} positions: the model supports ${decoder.maxPositions}`);
  }
  const layout = kvLayout(decoder, options.slots, contextLength);
  requireFit(layout, options.kvLimitBytes ?? Infinity);
  return {
    ...graphFile,
    config,
    decoder,
    layout,
    contextNote,
    maxSlots,
    runBytes: runs,
    vision,
    weightBytes,
  };
}

/** Returns the context that the operator gives, or the default. */
function contextOf(
  { contextLength, ...options }: Omit<ModelOptions, 'threads'>,
  decoder: DecoderInterface,
  otherBytes: number,
  free: typeof freeBytes,
) {
  if (contextLength !== undefined) return { contextLength, note: null };
  const { positionBytes, stateBytes } = kvLayout(decoder, 1, 1);
  const need = {
    maxPositions: decoder.maxPositions,
    positionBytes,
    stateBytes,
    slots: options.slotsMayGrow ? null : options.slots,
    otherBytes,
    kvLimitBytes: options.kvLimitBytes ?? Infinity,
  };
  return defaultContext(need, options.device ?? CPU, free);
}
