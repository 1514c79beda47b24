import { ModelError } from './model-json.ts';

/** Settings of the device that a model runs on. */
export const PROVIDERS = ['cpu', 'cuda', 'webgpu', 'auto'] as const;

/** An execution provider; `auto` = the first of cuda and webgpu that works, else cpu. */
export type ProviderChoice = (typeof PROVIDERS)[number];

export interface DeviceSettings {
  readonly provider: ProviderChoice;
  /** CUDA device number; null = the first. */
  readonly deviceId: number | null;
  /** Maximum memory on a CUDA device, KV cache included; null = all. */
  readonly memoryBytes: number | null;
}

export const CPU: DeviceSettings = { provider: 'cpu', deviceId: null, memoryBytes: null };

/** Reports whether the provider accepts a device id and a memory limit. */
export const hasDeviceOptions = (provider: ProviderChoice): boolean =>
  provider === 'cuda' || provider === 'auto';

/** @throws ModelError if an option is set that the provider ignores */
export function requireUsedOptions({ provider, deviceId, memoryBytes }: DeviceSettings): void {
  if (hasDeviceOptions(provider)) return;
  const set = deviceId !== null ? 'a device id' : memoryBytes !== null ? 'a limit on device memory' : null;
  if (set !== null)
    throw new ModelError(`${set} is set, but the provider ${provider} ignores it; remove it or choose cuda`);
}
