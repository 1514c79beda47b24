import type { DeviceSettings } from '../config/device.ts';
import { inMiB } from '../runner/kv-cache.ts';
import { freeBytes } from './run-limits.ts';

/** Positions of a slot if neither the operator nor the model limits them, as BLOOM was trained with. */
const UNLIMITED_MODEL = 2048;
/** On devices that do not report their free memory. */
const UNKNOWN_MEMORY = 8192;
/** A default context is a multiple of this, and at least two of it. */
const STEP = 1024;

interface ContextNeed {
  /** Infinity = the model has no limit. */
  readonly maxPositions: number;
  readonly positionBytes: number;
  /** Slots that must fit beside each other. */
  readonly slots: number;
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
 * Returns the positions of a slot where the operator gives none: all that the model has. A device reserves a
 * slot for the whole context, so there the slots must fit into half of the memory that weights and runs
 * leave.
 */
export function defaultContext(
  { maxPositions, positionBytes, slots, otherBytes, kvLimitBytes }: ContextNeed,
  device: DeviceSettings,
  free: typeof freeBytes = freeBytes,
): DefaultContext {
  const most = maxPositions === Infinity ? UNLIMITED_MODEL : maxPositions;
  if (device.provider === 'cpu') return { contextLength: most, note: null };
  const available = free(device);
  const room = Math.min(
    kvLimitBytes,
    available === null ? Infinity : Math.max(0, available - otherBytes) / 2,
  );
  const fitting = room === Infinity ? UNKNOWN_MEMORY : room / (slots * positionBytes);
  const contextLength = Math.min(most, STEP * Math.max(2, Math.floor(fitting / STEP)));
  if (contextLength === most) return { contextLength, note: null };
  const why =
    room === Infinity
      ? 'the device does not report its free memory'
      : `${slots} slots may take ${inMiB(room)} of the device`;
  const note = `context of ${contextLength} of ${most} positions, because ${why}; CONTINUO_CONTEXT sets another`;
  return { contextLength, note };
}
