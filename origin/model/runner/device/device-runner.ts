import type { ModelRunner } from '../../model-runner.ts';
import type { CudaCopies } from '../../ort/cuda-copies.ts';
import { openCudaDriver } from '../../ort/cuda-driver.ts';
import type { OrtDeviceMemory } from '../../ort/ort-device.ts';
import { OrtSession } from '../../ort/ort-session.ts';
import { SparseLogits } from '../../sparse-logits.ts';
import { type KvLayout, kvLayout } from '../kv-cache.ts';
import type { KvCopier } from '../kv-copier.ts';
import { OrtRunner } from '../ort-runner.ts';
import { inOrdinaryMemory, keptLogitRows, type RunnerOptions } from '../runner-options.ts';
import { CudaKvCopier } from './cuda-kv-copier.ts';
import { DecodeGraphs } from './decode-graphs.ts';
import { DeviceKvCache } from './device-kv-cache.ts';
import { DeviceScores } from './device-scores.ts';
import { DeviceStates } from './device-states.ts';
import { GraphRunner } from './graph-runner.ts';
import { OrtRowCopier } from './ort-row-copier.ts';
import { PromptsAhead } from './prompts-ahead.ts';
import { StagedRunner } from './staged-runner.ts';

/** How a runner of a device binds and copies; tests choose other ways on the CPU. */
export interface DeviceWays {
  /** Whether runs can only bind whole buffers. */
  readonly staged: boolean;
  openCopier(session: OrtSession): KvCopier;
  /** Whether prompts are scored where their logits are. */
  readonly scores: boolean;
  /** What copies inputs and logits of CUDA's runs; null = ONNX Runtime does, and there are no graphs. */
  openCopies(session: OrtSession): CudaCopies | null;
  /** Whether the session runs on the stream of these copies. */
  readonly sharesStream: boolean;
}

/** What a device keeps of all slots. */
interface DeviceStores {
  readonly cache: DeviceKvCache;
  readonly states: DeviceStates;
}

/** Creates a decoder's runner on a device, with KV in device memory. Owns the session even if it throws. */
export function deviceRunner(
  session: OrtSession,
  options: RunnerOptions,
  chosen: Partial<DeviceWays> = {},
): ModelRunner {
  const ways = { ...waysOf(session), ...chosen };
  const held = [() => session.dispose()];
  const release = () => {
    while (held.length > 0) held.pop()!();
  };
  try {
    const copier = ways.openCopier(session);
    held.push(() => copier.dispose());
    const memory = session.createDeviceMemory();
    held.push(() => memory.dispose());
    const { decoder } = options;
    const { vocabularySize } = decoder;
    const storesOf = (layout: KvLayout): DeviceStores => ({
      cache: new DeviceKvCache(memory, copier, decoder, layout),
      states: new DeviceStates(memory, copier, decoder.states, layout.slots),
    });
    if (ways.staged) return stagedRunner(session, options, storesOf, release);
    const stores = storesOf(options.layout);
    const scores = ways.scores ? new DeviceScores({ session, memory, vocabularySize }) : null;
    if (scores !== null) held.push(() => scores.dispose());
    // A graph keeps its addresses, but a run reads states in one of two places and writes the other.
    const copies = decoder.states.length > 0 ? null : ways.openCopies(session);
    if (copies === null) return new OrtRunner(session.lend(release), { ...options, ...stores, scores });
    const { sharesStream } = ways;
    return graphRunner(session, { ...options, ...stores, scores }, { memory, copies, sharesStream, release });
  } catch (error) {
    release();
    throw error;
  }
}

interface GraphParts {
  readonly memory: OrtDeviceMemory;
  readonly copies: CudaCopies;
  readonly sharesStream: boolean;
  release(): void;
}

/** Creates a runner whose logits are page-locked, so that the card copies them at its full speed. */
function graphRunner(
  session: OrtSession,
  options: RunnerOptions & { readonly cache: DeviceKvCache },
  { memory, copies, sharesStream, release }: GraphParts,
): ModelRunner {
  try {
    const { decoder, layout, prefillChunk, cache, allocateLogits = inOrdinaryMemory } = options;
    const rows = keptLogitRows(layout, prefillChunk);
    const { vocabularySize } = decoder;
    const allocated = allocateLogits(SparseLogits.length(rows, vocabularySize));
    const logits = new SparseLogits(allocated, rows, vocabularySize);
    const host = copies.pageLock(allocated);
    const wholeRows = (length: number) => allocated.subarray(0, length);
    const prefiller = new OrtRunner(session.lend(release), { ...options, allocateLogits: wholeRows });
    const parts = { session, decoder, layout, cache, memory, copies, logitsName: options.logits };
    const prompts = new PromptsAhead({ ...parts, prefillChunk });
    const graphs = new DecodeGraphs({ ...parts, logits, host, sharesStream });
    return new GraphRunner({ prefiller, graphs, prompts });
  } catch (error) {
    copies.dispose();
    throw error;
  }
}

/** Creates two runners over one session: one for all slots, one for the slot of prompts. */
function stagedRunner(
  session: OrtSession,
  options: RunnerOptions,
  storesOf: (layout: KvLayout) => DeviceStores,
  release: () => void,
): ModelRunner {
  const oneSlot = kvLayout(options.decoder, 1, options.layout.contextLength);
  const slots = storesOf(options.layout);
  const staging = storesOf(oneSlot);
  const lent = session.lend(() => {});
  const decoder = new OrtRunner(lent, { ...options, ...slots, prefillChunk: 1 });
  const prefiller = new OrtRunner(lent, { ...options, ...staging, layout: oneSlot });
  return new StagedRunner({ decoder, prefiller, slots: slots.cache, staging: staging.cache, release });
}

/** CUDA's driver copies strided memory. On other devices ONNX Runtime copies, on the session's device. */
const waysOf = ({ capturesGraphs, device, turns }: OrtSession): DeviceWays => ({
  staged: device.provider === 'webgpu',
  scores: device.provider === 'cuda',
  openCopier: ({ api }) =>
    device.provider === 'cuda'
      ? new CudaKvCopier(openCudaDriver().copies(device.deviceId, turns))
      : new OrtRowCopier(
          api,
          (graph) => new OrtSession(api, graph, { threads: 1, directory: '', device, turns }),
        ),
  openCopies: () =>
    capturesGraphs && device.provider === 'cuda'
      ? openCudaDriver().copies(device.deviceId, turns, device.stream)
      : null,
  sharesStream: device.provider === 'cuda' && device.stream !== undefined,
});
