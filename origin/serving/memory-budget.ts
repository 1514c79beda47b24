import { hasDeviceOptions } from '../model/config/device.ts';
import type { LimitOf } from './engines.ts';
import type { InspectedModel } from './inspect-model.ts';

/** Maximum memory of weights, KV caches and prefix stores of all models together, loaded or not; Infinity = no limit. */
export interface MemoryLimits {
  readonly mainBytes: number;
  /** Per CUDA card. */
  readonly cardBytes: number;
}

export const NO_MEMORY_LIMITS: MemoryLimits = { mainBytes: Infinity, cardBytes: Infinity };

const MIB = 2 ** 20;
const inMiB = (bytes: number): string => `${Math.ceil(bytes / MIB)} MiB`;

const MAIN = 'cpu';
const CARD = 'CUDA card ';

/** Names the memory that a model uses. `auto` counts as the CUDA card, because it tries the card first. */
export function memoryOf({ settings }: InspectedModel): string {
  const { provider, deviceId } = settings.engine.device;
  return hasDeviceOptions(provider) ? `${CARD}${deviceId ?? 0}` : provider;
}

export const isInMainMemory = (model: InspectedModel): boolean => memoryOf(model) === MAIN;

/** Returns the bytes in the model's own memory. The prefix store is in main memory. */
export function modelBytes(model: InspectedModel): number {
  const { weightBytes, kvBytes, runBytes, storeBytes } = model;
  return weightBytes + kvBytes + runBytes + (isInMainMemory(model) ? storeBytes : 0);
}

/** WebGPU has no limit. */
export const limitOf =
  ({ mainBytes, cardBytes }: MemoryLimits): LimitOf =>
  (memory) =>
    memory === MAIN ? mainBytes : memory.startsWith(CARD) ? cardBytes : Infinity;

/**
 * Requires that all models of a memory fit together, loaded or not, so that every model can be loaded at any time.
 * @throws Error one line with the sizes
 */
export function requireBudget(models: readonly InspectedModel[], limits: MemoryLimits): void {
  for (const [memory, sharing] of Map.groupBy(models, memoryOf)) {
    const needed = sharing.reduce((sum, model) => sum + modelBytes(model), 0);
    const limit = limitOf(limits)(memory);
    if (needed <= limit) continue;
    const [where, field] = memory === MAIN ? ['', 'memoryMiB'] : [` on ${memory}`, 'deviceMemoryMiB'];
    const parts = sharing.map(
      ({ settings: { name }, weightBytes, kvBytes, runBytes, storeBytes }) =>
        `${name} ${inMiB(weightBytes)} of weights and ${inMiB(kvBytes)} of KV cache` +
        (runBytes === 0 ? '' : `, ${inMiB(runBytes)} for runs`) +
        (storeBytes === 0 || memory !== MAIN ? '' : `, ${inMiB(storeBytes)} for prefixes`),
    );
    throw new Error(
      `the models${where} need ${inMiB(needed)}, but ${field} is ${limit / MIB}: ${parts.join(', ')}`,
    );
  }
}
