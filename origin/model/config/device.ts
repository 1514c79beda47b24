import { ModelError } from './model-json.ts';

/** Where a model runs, as configured. */
export const PROVIDERS = ['cpu', 'cuda', 'webgpu', 'auto'] as const;

/** One of ONNX Runtime's execution providers; `auto` = the first of cuda and webgpu that can be had, else cpu. */
export type ProviderChoice = (typeof PROVIDERS)[number];

export interface DeviceSettings {
  readonly provider: ProviderChoice;
  /** CUDA's number of the card; null = the first. */
  readonly deviceId: number | null;
  /** Most memory ONNX Runtime may take on a CUDA device, KV cache included; null = all of it. */
  readonly memoryBytes: number | null;
}

export const CPU: DeviceSettings = { provider: 'cpu', deviceId: null, memoryBytes: null };

/** Its devices have numbers and a limit on their memory. */
export const hasDeviceOptions = (provider: ProviderChoice): boolean =>
  provider === 'cuda' || provider === 'auto';

/** @throws ModelError when something is set that the provider has no use for */
export function requireMeaning({ provider, deviceId, memoryBytes }: DeviceSettings): void {
  if (hasDeviceOptions(provider)) return;
  const set = deviceId !== null ? 'a device id' : memoryBytes !== null ? 'a limit on device memory' : null;
  if (set !== null) throw new ModelError(`${set} is set, which the provider ${provider} knows nothing of`);
}
