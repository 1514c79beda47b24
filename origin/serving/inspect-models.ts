import { errorMessage } from '@continuo/shared/error-details.ts';
import type { ModelSettings } from '../config/model-settings.ts';
import { freeBytes, kvShare } from '../model/open/run-limits.ts';
import { type FaultyModel, type InspectedModel, type Inspection, inspectModel } from './inspect-model.ts';
import { bytesIn, limitOf, MAIN, type MemoryLimits, memoryOf } from './memory-budget.ts';

/** Reads everything in the models' directories, of large weights only samples. */
export function inspectModels(configured: readonly ModelSettings[], limits: MemoryLimits): Inspection {
  const models: InspectedModel[] = [];
  const faulty: FaultyModel[] = [];
  for (const settings of configured) {
    try {
      models.push(inspectModel(settings));
    } catch (error) {
      faulty.push({ settings, reason: errorMessage(error) });
    }
  }
  return { models: withAutomaticStores(withAutomaticSlots(models, limits), limits), faulty };
}

/** Used where the device does not report its free memory. */
const DEFAULT_SLOTS = 8;

/**
 * Gives more slots to the models whose number is automatic. They share equally a part of what all models
 * leave of the operator's limit, or of the free memory.
 * @param free returns the free memory of a device
 */
export function withAutomaticSlots(
  models: readonly InspectedModel[],
  limits: MemoryLimits,
  free: typeof freeBytes = freeBytes,
): InspectedModel[] {
  const leftBy = (model: InspectedModel): { readonly left: number; readonly isLimited: boolean } => {
    const memory = memoryOf(model);
    const sharing = models.filter((candidate) => memoryOf(candidate) === memory);
    const used = bytesIn(memory, models);
    const growing = sharing.filter(({ slots, maxSlots }) => slots < maxSlots).length;
    const limit = limitOf(limits)(memory);
    const share = kvShare(model.settings.engine.device) / growing;
    if (limit < Infinity) return { left: share * (limit - used), isLimited: true };
    const available = free(model.settings.engine.device);
    if (available === null) return { left: (DEFAULT_SLOTS - 1) * model.slotBytes, isLimited: false };
    return { left: share * (available - used), isLimited: false };
  };
  return models.map((model) => {
    if (model.slots === model.maxSlots) return model;
    const { left, isLimited } = leftBy(model);
    const more = Math.min(model.maxSlots - model.slots, Math.max(0, Math.floor(left / model.slotBytes)));
    const slots = model.slots + more;
    // A share of the limit changes only with the configuration. The free memory always changes: no reason for
    // a new engine.
    const key = isLimited ? JSON.stringify([model.key, slots]) : model.key;
    return { ...model, key, slots, kvBytes: model.kvBytes + more * model.slotBytes };
  });
}

/** Most memory that a prefix store takes if its size is automatic. */
const MAX_STORE_BYTES = 8 * 2 ** 30;

/** Returns what this process can use of the main memory, whatever it uses now. */
const mainMemory = (): number => process.availableMemory() + process.memoryUsage.rss();

/**
 * Gives memory to the prefix stores whose size is automatic. They share equally what all models leave of the
 * operator's limit, or a quarter of what they leave of the main memory.
 * @param main returns the bytes of main memory
 */
export function withAutomaticStores(
  models: readonly InspectedModel[],
  { mainBytes }: MemoryLimits,
  main: () => number = mainMemory,
): InspectedModel[] {
  const isAutomatic = ({ settings }: InspectedModel) => settings.engine.prefixCacheBytes === null;
  const used = bytesIn(MAIN, models);
  const left = mainBytes < Infinity ? mainBytes - used : (main() - used) / 4;
  const share = Math.floor(Math.max(0, left) / models.filter(isAutomatic).length);
  const storeBytes = Math.min(MAX_STORE_BYTES, share);
  return models.map((model) => (isAutomatic(model) ? { ...model, storeBytes } : model));
}
