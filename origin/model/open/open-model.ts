import { threadId } from 'node:worker_threads';
import { oneLine } from '@continuo/shared/error-details.ts';
import { type DeviceTurns, singleTurns, startOnCuda } from '../../process/engine-locks.ts';
import { LOGITS_INDEX } from '../config/decoder-names.ts';
import { CPU } from '../config/device.ts';
import { inFile } from '../config/model-json.ts';
import type { DecoderInterface } from '../decoder/decoder-interface.ts';
import { cardOf, deviceFor, type Machine, onDevice, thisMachine } from '../device/device-choice.ts';
import { patchDecoder } from '../foreign/patch-decoder.ts';
import type { ModelRunner, ModelShape } from '../model-runner.ts';
import { withIntegerProducts } from '../onnx/integer-products.ts';
import { openCudaDriver } from '../ort/cuda-driver.ts';
import { loadSession } from '../ort/graph-file.ts';
import type { OrtDevice } from '../ort/ort-device.ts';
import { hasVnni } from '../ort/vnni.ts';
import { scoreFault as findScoreFault } from '../runner/device/check-scores.ts';
import { GraphRunner } from '../runner/device/graph-runner.ts';
import { describeLayout, kvLayout, requireFit } from '../runner/kv-cache.ts';
import { OrtRunner } from '../runner/ort-runner.ts';
import { type AllocateLogits, MAX_PREFILL_CHUNKS } from '../runner/runner-options.ts';
import type { ImageEncoder } from '../vision/image-encoder.ts';
import { openVision } from '../vision/vision.ts';
import { requireSameStates } from './check-states.ts';
import { overflowWarning } from './overflow-warning.ts';
import { type ModelOptions, type ModelPlan, planModel } from './plan-model.ts';
import { prefillChunkOf, requireDeviceMemory } from './run-limits.ts';
import { requireGroupQueryAttention, requireKvKernels, startRunner } from './start-runner.ts';

export interface OpenedModel {
  readonly runner: ModelRunner;
  /** Null if the model does not accept images. Dispose it together with the runner. */
  readonly images: ImageEncoder | null;
  readonly shape: ModelShape;
  /** A card's name and number, or the provider. */
  readonly deviceName: string;
  /** One line for the log: the model's dimensions and the KV cache's size. */
  readonly summary: string;
  /** One line: why no GPU is used, and what this machine computes wrongly; or null. */
  readonly warning: string | null;
}

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
  const machine = thisMachine();
  let graphWarning: string | null = null;
  const { opened, warning } = await onDevice(device, machine, async (chosen) => {
    const openOn = (target: OrtDevice, turns?: DeviceTurns, ownStream = false) =>
      open(plan, options, { device: target, turns, ownStream }, machine, allocateLogits);
    const { engineLocks } = options;
    if (chosen.provider === 'cpu') return openOn(chosen);
    const openChecked = async (turns: DeviceTurns | undefined) => {
      const opened = await openOn(chosen, turns);
      if (plan.decoder.states.length === 0) return opened;
      await requireSameStates(opened.model, plan.file, (positions) =>
        openOnProcessor(plan, options, positions, machine),
      );
      return opened;
    };
    if (chosen.provider === 'webgpu') return openChecked(engineLocks && singleTurns(engineLocks, threadId));
    return startOnCuda(engineLocks, threadId, async (turns) => {
      // They have no graphs.
      if (plan.decoder.states.length > 0) return openChecked(turns);
      // Graphs read ids, not the vectors of images.
      if (plan.vision !== null) return openOn(chosen, turns);
      for (const ownStream of [true, false]) {
        try {
          const opened = await openOn({ ...chosen, graphs: true }, turns, ownStream);
          const { runner } = opened.model;
          if (runner instanceof GraphRunner) graphWarning = rowWarning(runner, graphWarning);
          return opened;
        } catch (error) {
          graphWarning = oneLine(error);
        }
      }
      graphWarning = `without CUDA graphs: ${graphWarning}`;
      return openOn(chosen, turns);
    });
  });
  const { model, scoreFault } = opened;
  const scoreWarning = scoreFault && `prompts are scored from whole rows of logits: ${scoreFault}`;
  const warnings = [warning, graphWarning, scoreWarning, overflowWarning(plan.decoder, hasVnni())].filter(
    (line) => line !== null,
  );
  return { ...model, warning: warnings.join('; ') || null };
}

/** Opens a model with one slot on the CPU. */
async function openOnProcessor(
  plan: ModelPlan,
  options: ModelOptions,
  positions: number,
  machine: Machine,
): Promise<ModelRunner> {
  const layout = kvLayout(plan.decoder, 1, Math.min(positions, plan.layout.contextLength));
  const device = { device: { provider: 'cpu' }, turns: undefined, ownStream: false } as const;
  const alone = { ...options, slots: 1, kvLimitBytes: null };
  return (await open({ ...plan, layout }, alone, device, machine, undefined)).model.runner;
}

/**
 * Says what a card with graphs leaves to the host, though it could do it; null if nothing.
 * @param streamFault why the runs are not on a stream of the origin; null if they are
 */
function rowWarning(
  { sparseFault, drawFault, aheadFault, promptFault }: GraphRunner,
  streamFault: string | null,
): string | null {
  if (sparseFault !== null) return `logits come to main memory as whole rows: ${sparseFault}`;
  if (drawFault !== null) return `tokens are drawn on the host: ${drawFault}`;
  if (aheadFault !== null)
    return `decode steps wait until the last tokens are read: ${streamFault ?? aheadFault}`;
  return promptFault && `prompts wait for decode steps that have begun: ${promptFault}`;
}

interface OpenedOnDevice {
  readonly model: Omit<OpenedModel, 'warning'>;
  /** Why prompts are scored from whole rows, though the device could score them; null if that is not so. */
  readonly scoreFault: string | null;
}

interface OpenedDevice {
  readonly device: OrtDevice;
  /** Absent = no other engine uses it. */
  readonly turns: DeviceTurns | undefined;
  /** Whether the runs are on a stream that copies and kernels can share. Only for CUDA. */
  readonly ownStream: boolean;
}

async function open(
  plan: ModelPlan,
  options: ModelOptions,
  { device, turns, ownStream }: OpenedDevice,
  machine: Machine,
  allocateLogits: AllocateLogits | undefined,
): Promise<OpenedOnDevice> {
  const { decoder, layout, file, vision } = plan;
  const { threads } = options;
  requireKvKernels(decoder, device, file);
  if (device.provider === 'cpu') {
    // The graph is in memory already; its external weights are still to be loaded into the free memory.
    const beside = plan.weightBytes - plan.model.length;
    if (options.kvLimitBytes === null) requireFit(layout, process.availableMemory() - beside, beside);
    else requireFit(layout, options.kvLimitBytes);
  } else requireGroupQueryAttention(decoder, file);
  let deviceName: string = device.provider;
  if (device.provider === 'cuda') {
    const card = cardOf(device, machine);
    requireDeviceMemory(plan, card, device.memoryBytes);
    deviceName = card.name;
  }
  const patched = inFile(file, () => patchDecoder(plan, decoder));
  const chunk = prefillChunkOf(device.provider, machine.adapters);
  const prefillChunk = Math.min(
    options.prefillChunk ?? chunk,
    layout.contextLength,
    device.provider === 'webgpu' ? chunk : Infinity,
  );
  const capacity = Math.max(options.slots, MAX_PREFILL_CHUNKS * prefillChunk);
  const parts = vision === null ? null : openVision(vision, { ...plan, threads, capacity });
  const embedder = parts?.embedder ?? null;
  const images = parts?.encoder ?? null;
  try {
    const { graph, logits } = patched;
    const model =
      device.provider === 'cpu' ? withIntegerProducts(patched.model, graph, LOGITS_INDEX) : patched.model;
    const chosen = deviceFor(graph, device, machine);
    const modelDevice =
      chosen.provider === 'cuda' && ownStream
        ? { ...chosen, stream: openCudaDriver().stream(chosen.deviceId, turns) }
        : chosen;
    const session = loadSession(plan, model, { threads, device: modelDevice, turns });
    const runnerOptions = { decoder, logits, layout, prefillChunk, embedder, allocateLogits };
    const runner = await startRunner(session, runnerOptions, { file, graph });
    const scoreFault = await withoutWrongScores(runner);
    const where = device.provider === 'cpu' ? '' : ` on ${deviceName}`;
    const summary = summaryOf(file, decoder, describeLayout(layout) + where, images);
    return { model: { runner, images, shape: runner.shape, deviceName, summary }, scoreFault };
  } catch (error) {
    images?.dispose();
    embedder?.dispose();
    throw error;
  }
}

/** Compares scores of the device with those of whole rows, and gives them up if they differ. */
async function withoutWrongScores(runner: ModelRunner): Promise<string | null> {
  const canScore = runner instanceof OrtRunner || runner instanceof GraphRunner;
  if (!canScore || runner.shape.maxScored === undefined) return null;
  const fault = await findScoreFault(runner);
  if (fault !== null) runner.dropScores();
  return fault;
}

function summaryOf(
  file: string,
  decoder: DecoderInterface,
  layout: string,
  images: ImageEncoder | null,
): string {
  const { layers, kvHeads, headSize, kvType, vocabularySize, cache, couplesRows } = decoder;
  const attention = kvHeads === 0 ? 'no KV' : `${kvHeads} KV heads of ${headSize} in ${kvType}`;
  const rows = cache === 'concatenated' || couplesRows ? 'one row per run; ' : '';
  const seen =
    images === null ? '' : `images of ${images.width} × ${images.height} in ${images.positions} positions; `;
  return (
    `${file}: ${layers} layers, ${attention}, ` +
    `vocabulary ${vocabularySize}; ${seen}${rows}KV cache ${layout}`
  );
}
