import type { ModelRunner } from '../model-runner.ts';
import { ElementType } from '../onnx/onnx-graph.ts';
import { rowCopyGraph } from '../onnx/row-copy-graph.ts';
import { openCudaDriver } from '../ort/cuda-driver.ts';
import { OrtSession } from '../ort/ort-session.ts';
import { CudaKvCopier } from './cuda-kv-copier.ts';
import { DeviceKvCache } from './device-kv-cache.ts';
import { type KvLayout, kvLayout } from './kv-cache.ts';
import type { KvCopier } from './kv-copier.ts';
import { OrtRowCopier } from './ort-row-copier.ts';
import { OrtRunner } from './ort-runner.ts';
import type { RunnerOptions } from './runner-options.ts';
import { StagedRunner } from './staged-runner.ts';

/**
 * Creates the runner of a decoder on a device, with the KV cache in device memory. Owns the session, also if it throws.
 * @param staged whether runs can only bind whole buffers
 * @param openCopier opens what copies the KV
 */
export function deviceRunner(
  session: OrtSession,
  options: RunnerOptions,
  staged = session.device.provider === 'webgpu',
  openCopier: typeof openKvCopier = openKvCopier,
): ModelRunner {
  const held = [() => session.dispose()];
  const release = () => {
    while (held.length > 0) held.pop()!();
  };
  try {
    const copier = openCopier(session, options);
    held.push(() => copier.dispose());
    const memory = session.createDeviceMemory();
    held.push(() => memory.dispose());
    const cacheOf = (layout: KvLayout) => new DeviceKvCache(memory, copier, options.decoder, layout);
    if (staged) return stagedRunner(session, options, cacheOf, release);
    return new OrtRunner(session.lend(release), { ...options, cache: cacheOf(options.layout) });
  } catch (error) {
    release();
    throw error;
  }
}

/** Creates two runners over one session: one for all slots, one for the slot in which prompts are computed. */
function stagedRunner(
  session: OrtSession,
  options: RunnerOptions,
  cacheOf: (layout: KvLayout) => DeviceKvCache,
  release: () => void,
): ModelRunner {
  const oneSlot = kvLayout(options.decoder, 1, options.layout.contextLength);
  const slots = cacheOf(options.layout);
  const staging = cacheOf(oneSlot);
  const lent = session.lend(() => {});
  const decoder = new OrtRunner(lent, { ...options, cache: slots, prefillChunk: 1 });
  const prefiller = new OrtRunner(lent, { ...options, cache: staging, layout: oneSlot });
  return new StagedRunner({ decoder, prefiller, slots, staging, release });
}

/** CUDA's driver copies strided memory. On other devices ONNX Runtime copies, on the session's device. */
function openKvCopier({ api, device }: OrtSession, { decoder }: RunnerOptions): KvCopier {
  if (device.provider === 'cuda') return new CudaKvCopier(openCudaDriver().copies(device.deviceId));
  const graph = rowCopyGraph(decoder.kv.length, ElementType[decoder.kvType]);
  return new OrtRowCopier(new OrtSession(api, graph, { threads: 1, directory: '', device }));
}
