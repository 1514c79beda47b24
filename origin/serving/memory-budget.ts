import { type DeviceSettings, hasDeviceOptions } from '../model/config/device.ts';
import type { LimitOf } from './engines.ts';
import type { InspectedModel, Inspection } from './inspect-model.ts';

/** Maximum memory of weights, KV caches and prefix stores of all models together; Infinity = no limit. */
export interface MemoryLimits {
  readonly mainBytes: number;
  /** Per CUDA card. */
  readonly cardBytes: number;
}

export const NO_MEMORY_LIMITS: MemoryLimits = { mainBytes: Infinity, cardBytes: Infinity };

const MIB = 2 ** 20;
const inMiB = (bytes: number): string => `${Math.ceil(bytes / MIB)} MiB`;

/** The memory of the CPU, as `memoryOf` names it. */
export const MAIN = 'cpu';
const CARD = 'CUDA card ';

/** Names the memory of a device. `auto` counts as the CUDA card, because it tries the card first. */
export const memoryOfDevice = ({ provider, deviceId }: DeviceSettings): string =>
  hasDeviceOptions(provider) ? `${CARD}${deviceId ?? 0}` : provider;

/** Names the memory that a model uses. */
export const memoryOf = ({ settings }: InspectedModel): string => memoryOfDevice(settings.engine.device);

/** Returns a model's bytes in a memory, by default its own. The prefix store is always in main memory. */
export function modelBytes(model: InspectedModel, memory = memoryOf(model)): number {
  const { weightBytes, kvBytes, runBytes, storeBytes } = model;
  const bytes = memory === memoryOf(model) ? weightBytes + kvBytes + runBytes : 0;
  return bytes + (memory === MAIN ? storeBytes : 0);
}

/** Returns the bytes of all models in a memory. */
export const bytesIn = (memory: string, models: readonly InspectedModel[]): number =>
  models.reduce((sum, model) => sum + modelBytes(model, memory), 0);

/** WebGPU has no limit. @param cards bytes that engines can hold of cards, by name */
export const limitOf =
  ({ mainBytes, cardBytes }: MemoryLimits, cards: Inspection['cards'] = {}): LimitOf =>
  (memory) => {
    if (memory === MAIN) return mainBytes;
    return memory.startsWith(CARD) ? Math.min(cardBytes, cards[memory] ?? Infinity) : Infinity;
  };

/**
 * Requires that all models of a memory fit together, loaded or not, so that every model can be loaded at any
 * time.
 * @throws Error one line with the sizes
 */
export function requireBudget(models: readonly InspectedModel[], limits: MemoryLimits): void {
  for (const memory of new Set([MAIN, ...models.map(memoryOf)])) {
    const needed = bytesIn(memory, models);
    const limit = limitOf(limits)(memory);
    if (needed <= limit) continue;
    const [where, field] = memory === MAIN ? ['', 'memoryMiB'] : [` on ${memory}`, 'deviceMemoryMiB'];
    const parts = models
      .filter((model) => modelBytes(model, memory) > 0)
      .map((model) => `${model.settings.name} ${partsIn(memory, model)}`);
    throw new Error(
      `the models${where} need ${inMiB(needed)}, but ${field} is ${limit / MIB}: ${parts.join(', ')}`,
    );
  }
}

/** "16 MiB of weights and 30 MiB of KV cache, 8 MiB for prefixes" */
function partsIn(memory: string, model: InspectedModel): string {
  const { weightBytes, kvBytes, runBytes, storeBytes } = model;
  const parts = [`${inMiB(weightBytes)} of weights and ${inMiB(kvBytes)} of KV cache`];
  if (runBytes > 0) parts.push(`${inMiB(runBytes)} for runs`);
  const prefixes = memory === MAIN && storeBytes > 0 ? [`${inMiB(storeBytes)} for prefixes`] : [];
  return [...(memory === memoryOf(model) ? parts : []), ...prefixes].join(', ');
}
