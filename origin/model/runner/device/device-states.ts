import type { StateTensor } from '../../decoder/state-tensors.ts';
import type { OrtDeviceMemory } from '../../ort/ort-device.ts';
import type { KvCopier } from '../kv-copier.ts';
import { StateMemory } from '../state-cache.ts';
import { DeviceKvCache } from './device-kv-cache.ts';

/** The states of all slots in device memory. Those that are kept go to main memory, which has more room. */
export class DeviceStates extends StateMemory {
  constructor(memory: OrtDeviceMemory, copier: KvCopier, tensors: readonly StateTensor[], slots: number) {
    super(tensors, slots, (decoder, layout) => new DeviceKvCache(memory, copier, decoder, layout));
  }
}
