import type { DeviceSettings } from '../../origin/model/config/device.ts';
import { missingCudaLibraries } from '../../origin/model/device/cuda-libraries.ts';
import { thisMachine } from '../../origin/model/device/device-choice.ts';

/** An execution provider that tests can run on, or why this machine cannot. */
export interface ProviderAtHand {
  readonly device: DeviceSettings;
  readonly provider: 'cpu' | 'cuda' | 'webgpu';
  readonly absent: string | null;
}

export function providersAtHand(): ProviderAtHand[] {
  const settings = (provider: ProviderAtHand['provider'], absent: string | null) => ({
    device: { provider, deviceId: null, memoryBytes: null },
    provider,
    absent,
  });
  return [settings('cpu', null), settings('webgpu', webgpuIsAbsent()), settings('cuda', cudaIsAbsent())];
}

/** A software renderer such as Mesa's lavapipe suffices. */
function webgpuIsAbsent(): string | null {
  const { platform, adapters } = thisMachine();
  if (platform !== 'linux') return `the tests look for adapters under Linux, not ${platform}`;
  return adapters().length > 0 ? null : 'there is no Vulkan device';
}

function cudaIsAbsent(): string | null {
  const { platform, arch, cuda } = thisMachine();
  if (platform !== 'linux' || arch !== 'x64') return `there is no CUDA provider for ${platform} on ${arch}`;
  const missing = missingCudaLibraries(cuda);
  return missing.length === 0 ? null : `missing: ${missing.map((line) => line.split(' ')[0]).join(', ')}`;
}
