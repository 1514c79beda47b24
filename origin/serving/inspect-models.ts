import { errorMessage } from '../../shared/error-details.ts';
import type { ModelSettings } from '../config/model-settings.ts';
import { freeBytes } from '../model/open/run-limits.ts';
import { type FaultyModel, type InspectedModel, type Inspection, inspectModel } from './inspect-model.ts';
import { limitOf, type MemoryLimits, memoryOf, modelBytes } from './memory-budget.ts';

/** Reads everything in the models' directories except the weights. */
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
  return { models: withAutomaticSlots(models, limits), faulty };
}

/** Used where the device does not report its free memory. */
const DEFAULT_SLOTS = 8;

/**
 * Gives more slots to the models whose number is automatic. They share equally what all models leave of the operator's
 * limit, or half of what they leave of the free memory: prefixes, runs and other programs need the rest.
 * @param free returns the free memory of a device
 */
export function withAutomaticSlots(
  models: readonly InspectedModel[],
  limits: MemoryLimits,
  free: typeof freeBytes = freeBytes,
): InspectedModel[] {
  const leftBy = (model: InspectedModel): { readonly left: number; readonly isLimited: boolean } => {
    const memory = memoryOf(model);
    const sharing = models.filter((other) => memoryOf(other) === memory);
    const used = sharing.reduce((sum, other) => sum + modelBytes(other), 0);
    const growing = sharing.filter(({ slots, maxSlots }) => slots < maxSlots).length;
    const limit = limitOf(limits)(memory);
    if (limit < Infinity) return { left: (limit - used) / growing, isLimited: true };
    const available = free(model.settings.engine.device);
    if (available === null) return { left: (DEFAULT_SLOTS - 1) * model.slotBytes, isLimited: false };
    return { left: (available - used) / 2 / growing, isLimited: false };
  };
  return models.map((model) => {
    if (model.slots === model.maxSlots) return model;
    const { left, isLimited } = leftBy(model);
    const more = Math.min(model.maxSlots - model.slots, Math.max(0, Math.floor(left / model.slotBytes)));
    const slots = model.slots + more;
    // A share of the limit changes only with the configuration. The free memory always changes: no reason for a new engine.
    const key = isLimited ? JSON.stringify([model.key, slots]) : model.key;
    return { ...model, key, slots, kvBytes: model.kvBytes + more * model.slotBytes };
  });
}
