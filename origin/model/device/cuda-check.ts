import { type Machine, requireCuda, versionText } from './device-choice.ts';

/**
 * Returns what CUDA runs on: the provider with the version that it needs, and the driver with the version that it has.
 * @throws ModelError one line with the next step
 */
export function checkCuda(machine: Machine): string[] {
  const { needed, version, cards } = requireCuda(0, machine);
  return [
    `CUDA provider in ${machine.cuda.folder}, for CUDA ${needed ?? 'of any version'}`,
    `NVIDIA driver for CUDA ${versionText(version)} with ${cards.map((name, id) => `card ${id} (${name})`).join(', ')}`,
    'CUDA can be used: CONTINUO_PROVIDER=cuda',
  ];
}
