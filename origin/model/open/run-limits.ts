import type { DeviceSettings } from '../config/device.ts';
import { cardOf, type Machine, thisMachine } from '../device/device-choice.ts';
import { MEMORY_ADVICE } from '../model-runner.ts';
import type { Adapter } from '../ort/ort-adapters.ts';
import type { OrtDevice } from '../ort/ort-device.ts';
import { describeLayout, inMiB, type KvLayout, OutOfMemoryError } from '../runner/kv-cache.ts';

/** How large the runs on a device are, and the memory that they need. */

/**
 * Tokens of one prefill run, and the granularity of the prefix cache. On 2 cores with 8 layers of 512 in 8
 * bits and prompts of 1,024 tokens, chunks of 16, 32, 64 and 128 prefill 2,230, 2,700, 3,000 and 3,160
 * tokens/s and delay running streams by 8, 14, 24 and 45 ms. A decode step of 16 rows takes 8 ms, so 32 is
 * the compromise. Each chunk reads all weights, which a card computes with faster than it reads them: an H200
 * prefills 13,000, 126,000 and 171,000 tokens/s of 1.2 B in chunks of 32, 512 and 1,024. 128 for WebGPU is an
 * estimate.
 */
const PREFILL_CHUNK = { cpu: 32, cuda: 512, webgpu: 128 } as const;

/**
 * ONNX Runtime 1.30's attention shader for 32 and more tokens loses keys on adapters with fewer lanes per
 * subgroup.
 */
const NARROW_SUBGROUP = 32;

/** @param adapters WebGPU can choose any of them; empty = unknown */
export function prefillChunkOf(provider: OrtDevice['provider'], adapters: () => readonly Adapter[]): number {
  if (provider !== 'webgpu') return PREFILL_CHUNK[provider];
  const available = adapters();
  const wide =
    available.length > 0 && available.every(({ minSubgroupSize }) => minSubgroupSize >= NARROW_SUBGROUP);
  return wide ? PREFILL_CHUNK.webgpu : NARROW_SUBGROUP - 1;
}

/** Device memory of a model in bytes, by use. */
interface DeviceNeed {
  readonly weightBytes: number;
  readonly layout: KvLayout;
  /** Logits, activations and workspaces. */
  readonly runBytes: number;
}

/** CUDA context, kernels and cuBLAS workspaces, beyond ONNX Runtime's limit: with runs 553 MiB on an H200. */
const CONTEXT_BYTES = 512 * 2 ** 20;

/**
 * Returns the free memory of a device. `auto` means the CUDA card if there is one.
 * @returns null if the device does not report it
 */
export function freeBytes(
  { provider, deviceId, memoryBytes }: DeviceSettings,
  machine: Pick<Machine, 'driver'> = thisMachine(),
): number | null {
  if (provider === 'webgpu') return null;
  if (provider === 'cpu') return process.availableMemory();
  const card = cardOrNull(deviceId, machine);
  if (card !== null) return Math.min(memoryBytes ?? Infinity, card.freeBytes - CONTEXT_BYTES);
  return provider === 'auto' ? process.availableMemory() : null;
}

function cardOrNull(deviceId: number | null, machine: Pick<Machine, 'driver'>) {
  try {
    return cardOf({ deviceId: deviceId ?? 0 }, machine);
  } catch {
    return null;
  }
}

/** Other programs need the rest of a card, and prefixes that of the main memory, too. */
const KV_SHARE = { card: 0.9, main: 0.5 } as const;

/** Returns which memory the KV of a device is in. */
export const memoryOf = (
  { provider, deviceId }: DeviceSettings,
  machine: Pick<Machine, 'driver'> = thisMachine(),
): 'card' | 'main' =>
  provider === 'cpu' || (provider === 'auto' && cardOrNull(deviceId, machine) === null) ? 'main' : 'card';

/** Returns the part of a device's free memory, without weights and runs, that KV caches take by default. */
export const kvShare = (device: DeviceSettings, machine: Pick<Machine, 'driver'> = thisMachine()): number =>
  KV_SHARE[memoryOf(device, machine)];

/**
 * @param card its name and free memory
 * @param limitBytes the operator's limit; null = none
 * @throws OutOfMemoryError one line with all sizes
 */
export function requireDeviceMemory(
  { weightBytes, layout, runBytes }: DeviceNeed,
  card: { readonly name: string; readonly freeBytes: number },
  limitBytes: number | null,
): void {
  const needed = weightBytes + layout.totalBytes + runBytes;
  const free = card.freeBytes - CONTEXT_BYTES;
  const available = Math.min(free, limitBytes ?? Infinity);
  if (needed <= available) return;
  const why =
    available === free
      ? `${inMiB(card.freeBytes)} are free, ${inMiB(CONTEXT_BYTES)} of them for CUDA`
      : `the limit is ${inMiB(available)}`;
  throw new OutOfMemoryError(
    `the model needs ${inMiB(needed)} on ${card.name}, but ${why}: ${inMiB(weightBytes)} of weights, ` +
      `${inMiB(runBytes)} for runs, KV cache ${describeLayout(layout)}; ${MEMORY_ADVICE}`,
  );
}
