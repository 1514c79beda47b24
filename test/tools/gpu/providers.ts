import type { DeviceSettings } from '../../../origin/model/config/device.ts';
import { type Machine, requireCuda, thisMachine } from '../../../origin/model/device/device-choice.ts';

/** An execution provider that tests can run on, or why this machine cannot. */
export interface ProviderAtHand {
  readonly device: DeviceSettings;
  readonly provider: 'cpu' | 'cuda' | 'webgpu';
  readonly absent: string | null;
}

export function providersAtHand(): ProviderAtHand[] {
  const machine = thisMachine();
  const settings = (provider: ProviderAtHand['provider'], absent: string | null) => ({
    device: { provider, deviceId: null, memoryBytes: null },
    provider,
    absent,
  });
  return [
    settings('cpu', null),
    settings('webgpu', webgpuIsAbsent(machine)),
    settings('cuda', cudaIsAbsent(machine)),
  ];
}

/** A software renderer such as SwiftShader suffices. */
function webgpuIsAbsent({ platform, adapters }: Machine): string | null {
  if (platform !== 'linux') return `the tests look for adapters under Linux, not ${platform}`;
  return adapters().length > 0 ? null : 'there is no Vulkan device';
}

function cudaIsAbsent(machine: Machine): string | null {
  try {
    requireCuda(0, machine);
    return null;
  } catch (error) {
    return (error as Error).message;
  }
}
