import { errorMessage } from '@continuo/shared/error-details.ts';
import type { ModelSettings } from '../config/model-settings.ts';
import type { DeviceSettings } from '../model/config/device.ts';
import { freeBytes, kvShare, memoryOf as placeOf } from '../model/open/run-limits.ts';
import {
  type FaultyModel,
  type InspectedModel,
  type Inspection,
  inspectModel,
  keyOf,
} from './inspect-model.ts';
import { bytesIn, limitOf, MAIN, type MemoryLimits, memoryOf, memoryOfDevice } from './memory-budget.ts';

/** What an origin serves while it inspects its models again. */
export interface ServedSet {
  readonly models: readonly InspectedModel[];
  /** Bytes of a CUDA card, by its name, that engines hold. */
  readonly held: Readonly<Record<string, number>>;
}

const NOTHING_SERVED: ServedSet = { models: [], held: {} };

/**
 * Reads everything in the models' directories, of large weights only samples.
 * @param served models whose key is the same keep their context and slots. What engines hold counts as free,
 *   apart from that, because the free memory that is measured beside them would fit a fraction of a model
 * @param free returns the free memory of a device
 */
export function inspectModels(
  configured: readonly ModelSettings[],
  limits: MemoryLimits,
  served: ServedSet = NOTHING_SERVED,
  free: typeof freeBytes = freeBytes,
): Inspection {
  const models: InspectedModel[] = [];
  const faulty: FaultyModel[] = [];
  const kept = keptModels(configured, served);
  const available = availableBytes(served, free);
  const beside = (device: DeviceSettings) => {
    const bytes = available(device);
    return bytes && bytes - bytesIn(memoryOfDevice(device), [...kept.values()]);
  };
  for (const settings of configured) {
    try {
      const before = kept.get(settings.name) ?? null;
      const model = inspectModel(settings, beside, before);
      models.push(before === null || isLimited(model, limits) ? model : withSlots(model, before));
    } catch (error) {
      faulty.push({ settings, reason: errorMessage(error) });
    }
  }
  const sized = withAutomaticStores(withAutomaticSlots(models, limits, available), limits);
  return { models: sized, faulty, cards: cardsOf(sized, available) };
}

/** Returns, by name, the served models of which neither settings nor files have changed. */
function keptModels(
  configured: readonly ModelSettings[],
  { models }: ServedSet,
): ReadonlyMap<string, InspectedModel> {
  const before = new Map(models.map((model) => [model.settings.name, model]));
  const kept = configured.flatMap((settings) => {
    const model = before.get(settings.name);
    if (model === undefined) return [];
    const key = keyOf(settings);
    return [key, keyWithSlots(key, model.slots)].includes(model.key) ? [[settings.name, model] as const] : [];
  });
  return new Map(kept);
}

/** Whether the operator limits a model's memory. The slots then follow from the limit. */
const isLimited = (model: InspectedModel, limits: MemoryLimits): boolean =>
  limitOf(limits)(memoryOf(model)) < Infinity;

const withSlots = (model: InspectedModel, { slots, kvBytes }: InspectedModel): InspectedModel => ({
  ...model,
  slots,
  maxSlots: slots,
  kvBytes,
});

/** Returns the memory that all models of a device can take, whatever engines hold of it now. */
const availableBytes =
  ({ models, held }: ServedSet, free: typeof freeBytes) =>
  (device: DeviceSettings): number | null => {
    const bytes = free({ ...device, memoryBytes: null });
    if (bytes === null) return null;
    const inMain = () => (models.length === 0 ? 0 : process.memoryUsage.rss());
    const inUse = placeOf(device) === 'main' ? inMain() : (held[memoryOfDevice(device)] ?? 0);
    return Math.min(device.memoryBytes ?? Infinity, bytes + inUse);
  };

/** A model that does not fit is loaded alone, and the error has its sizes. */
function cardsOf(
  models: readonly InspectedModel[],
  available: (device: DeviceSettings) => number | null,
): Readonly<Record<string, number>> {
  const onCards = models.filter(({ settings }) => placeOf(settings.engine.device) === 'card');
  const cards = onCards.flatMap((model) => {
    const bytes = available({ ...model.settings.engine.device, memoryBytes: null });
    const memory = memoryOf(model);
    return bytes === null ? [] : [[memory, Math.max(bytes, bytesIn(memory, models))] as const];
  });
  return Object.fromEntries(cards);
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
  const leftBy = (model: InspectedModel): number => {
    const memory = memoryOf(model);
    const sharing = models.filter((candidate) => memoryOf(candidate) === memory);
    const used = bytesIn(memory, models);
    const growing = sharing.filter(({ slots, maxSlots }) => slots < maxSlots).length;
    const limit = limitOf(limits)(memory);
    const share = kvShare(model.settings.engine.device) / growing;
    if (limit < Infinity) return share * (limit - used);
    const available = free(model.settings.engine.device);
    return available === null ? (DEFAULT_SLOTS - 1) * model.slotBytes : share * (available - used);
  };
  return models.map((model) => {
    if (model.slots === model.maxSlots) return model;
    const fitting = Math.max(0, Math.floor(leftBy(model) / model.slotBytes));
    const more = Math.min(model.maxSlots - model.slots, fitting);
    const slots = model.slots + more;
    // A share of the limit changes only with the configuration. The free memory always changes: no reason for
    // a new engine.
    const key = isLimited(model, limits) ? keyWithSlots(model.key, slots) : model.key;
    return { ...model, key, slots, kvBytes: model.kvBytes + more * model.slotBytes };
  });
}

const keyWithSlots = (key: string, slots: number): string => JSON.stringify([key, slots]);

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
