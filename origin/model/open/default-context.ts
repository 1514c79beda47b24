import type { DeviceSettings } from '../config/device.ts';
import { inMiB } from '../runner/kv-cache.ts';
import { type freeBytes, kvShare, memoryOf } from './run-limits.ts';

/** Positions of a slot if neither the operator nor the model limits them, as BLOOM was trained with. */
const UNLIMITED_MODEL = 2048;
/** On devices that do not report their free memory. */
const UNKNOWN_MEMORY = 8192;
/** A default context is a multiple of this, and at least two of it. */
const STEP = 1024;

/**
 * Where the number of slots is chosen: few prompts are longer, and each slot of a card takes them all. Also
 * of models without limit whose positions take no memory.
 */
const LONG = 16_384;
/** Shorter contexts refuse prompts that are usual. Fewer slots are better then, down to `few`. */
const SHORT = 4096;

/**
 * A batch that reads the weights for many rows serves several times the requests of a few rows. A processor
 * gains little beyond eight.
 */
const SLOTS = { card: { many: 64, few: 8 }, main: { many: 8, few: 2 } } as const;

interface ContextNeed {
  /** Infinity = the model has no limit. */
  readonly maxPositions: number;
  readonly positionBytes: number;
  /** Of a slot, whatever its length. */
  readonly stateBytes: number;
  /** Slots that must fit beside each other; null = their number is chosen for the context. */
  readonly slots: number | null;
  /** Weights and runs. */
  readonly otherBytes: number;
  /** Maximum memory of the KV cache. */
  readonly kvLimitBytes: number;
}

interface DefaultContext {
  readonly contextLength: number;
  /** One line: why it is shorter than the model allows; null if it is not. */
  readonly note: string | null;
}

/**
 * Returns the positions of a slot where the operator gives none. A slot may fill its whole context, so the
 * operator's slots must fit. If their number is chosen, the context is as long as many slots fit, but not
 * beyond what few prompts need.
 */
export function defaultContext(
  { maxPositions, positionBytes, stateBytes, slots, otherBytes, kvLimitBytes }: ContextNeed,
  device: DeviceSettings,
  free: typeof freeBytes,
): DefaultContext {
  const unlimited = positionBytes === 0 ? LONG : UNLIMITED_MODEL;
  const most = maxPositions === Infinity ? unlimited : maxPositions;
  const available = free(device);
  const room = Math.min(
    kvLimitBytes,
    available === null ? Infinity : kvShare(device) * Math.max(0, available - otherBytes),
  );
  const fitting = (count: number) => {
    if (room === Infinity) return UNKNOWN_MEMORY;
    return positionBytes === 0 ? Infinity : (room / count - stateBytes) / positionBytes;
  };
  const { many, few } = SLOTS[memoryOf(device)];
  const wanted =
    slots === null ? Math.min(LONG, Math.max(fitting(many), Math.min(SHORT, fitting(few)))) : fitting(slots);
  const contextLength = Math.min(most, STEP * Math.max(2, Math.floor(wanted / STEP)));
  if (contextLength === most) return { contextLength, note: null };
  const isLong = slots === null && contextLength === LONG;
  const why =
    room === Infinity
      ? 'the device does not report its free memory'
      : isLong
        ? 'few prompts are longer'
        : `${slots ?? many} slots may take ${inMiB(room)}`;
  const note = `context of ${contextLength} of ${most} positions, because ${why}; CONTINUO_CONTEXT sets another`;
  return { contextLength, note };
}
