import { hasDeviceOptions } from '../model/config/device.ts';
import type { LimitOf } from './engine-state.ts';
import type { SurveyedModel } from './survey.ts';

/** Most memory of weights and KV caches of all models together, loaded or not; Infinity = as much as there is. */
export interface MemoryLimits {
  readonly mainBytes: number;
  /** Of each CUDA card. */
  readonly cardBytes: number;
}

export const UNLIMITED: MemoryLimits = { mainBytes: Infinity, cardBytes: Infinity };

const MIB = 2 ** 20;
const inMiB = (bytes: number): string => `${Math.ceil(bytes / MIB)} MiB`;

const MAIN = 'cpu';
const CARD = 'CUDA card ';

/** Where `auto` ends is known once it is loaded; it begins with the card. */
export function memoryOf({ settings }: SurveyedModel): string {
  const { provider, deviceId } = settings.engine.device;
  return hasDeviceOptions(provider) ? `${CARD}${deviceId ?? 0}` : provider;
}

export const bytesOf = ({ weightBytes, kvBytes }: SurveyedModel): number => weightBytes + kvBytes;

/** WebGPU has one model at most, and no limit. */
export const limitOf =
  ({ mainBytes, cardBytes }: MemoryLimits): LimitOf =>
  (memory) =>
    memory === MAIN ? mainBytes : memory.startsWith(CARD) ? cardBytes : Infinity;

/**
 * All models of a memory must fit together, loaded or not: whatever is asked for can then be loaded.
 * @throws Error one line with the numbers
 */
export function requireBudget(models: readonly SurveyedModel[], limits: MemoryLimits): void {
  for (const [memory, sharing] of Map.groupBy(models, memoryOf)) {
    const needed = sharing.reduce((sum, model) => sum + bytesOf(model), 0);
    const limit = limitOf(limits)(memory);
    if (needed <= limit) continue;
    const [where, field] = memory === MAIN ? ['', 'memoryMiB'] : [` on ${memory}`, 'deviceMemoryMiB'];
    const parts = sharing.map(
      ({ settings: { name }, weightBytes, kvBytes }) =>
        `${name} ${inMiB(weightBytes)} of weights and ${inMiB(kvBytes)} of KV cache`,
    );
    throw new Error(
      `the models${where} need ${inMiB(needed)}, but ${field} is ${limit / MIB}: ${parts.join(', ')}`,
    );
  }
}
