import { errorMessage } from '@continuo/shared/error-details.ts';
import type { DeviceSettings } from '../config/device.ts';
import { ModelError } from '../config/model-json.ts';
import type { OnnxGraph } from '../onnx/onnx-graph.ts';
import { type CudaCard, type CudaDriver, openCudaDriver } from '../ort/cuda-driver.ts';
import { cudaFolder } from '../ort/cuda-folder.ts';
import { type Adapter, vulkanAdapters } from '../ort/ort-adapters.ts';
import type { OrtDevice } from '../ort/ort-device.ts';
import { bundledFolder, mapPermanently } from '../ort/ort-library.ts';
import {
  type CudaFiles,
  cudaVersion,
  cudnnOperator,
  missingCudaLibraries,
  missingCudnn,
} from './cuda-libraries.ts';

/** Properties of the machine that the choice depends on. */
export interface Machine {
  readonly platform: NodeJS.Platform;
  readonly arch: string;
  /** The CUDA provider and its libraries. */
  readonly cuda: CudaFiles;
  /** Vulkan adapters; empty on other platforms than Linux. */
  adapters(): readonly Adapter[];
  /** @throws Error that completes "the NVIDIA driver …" */
  driver(): CudaDriver;
}

export function thisMachine(): Machine {
  const folder = cudaFolder(process.env) ?? bundledFolder();
  const { platform, arch } = process;
  const adapters = platform === 'linux' ? vulkanAdapters : () => [];
  return { platform, arch, cuda: { folder, map: mapPermanently }, adapters, driver: openCudaDriver };
}

export interface Opened<T> {
  readonly opened: T;
  /** One line: why `auto` chose the CPU; otherwise null. */
  readonly warning: string | null;
}

/**
 * Opens a model on the configured device, or with `auto` on the first that works: cuda, webgpu on a GPU, cpu.
 * @param open opens the model on one device, or throws
 * @throws ModelError with one line, or what `open` throws
 */
export async function onDevice<T>(
  settings: DeviceSettings,
  machine: Machine,
  open: (device: OrtDevice) => Promise<T>,
): Promise<Opened<T>> {
  const device = deviceOf(settings);
  if (device !== null) {
    requireDevice(device, machine);
    return { opened: await open(device), warning: null };
  }
  const refusals: string[] = [];
  for (const candidate of [cudaDevice(settings), { provider: 'webgpu' }] as const) {
    try {
      requireDevice(candidate, machine);
      if (candidate.provider === 'webgpu') requireGpu(machine);
      return { opened: await open(candidate), warning: null };
    } catch (error) {
      refusals.push(`${candidate.provider}: ${errorMessage(error)}`);
    }
  }
  return { opened: await open({ provider: 'cpu' }), warning: `using the CPU; ${refusals.join('; ')}` };
}

/** Returns null for `auto`. */
function deviceOf(settings: DeviceSettings): OrtDevice | null {
  const { provider } = settings;
  if (provider === 'auto') return null;
  return provider === 'cuda' ? cudaDevice(settings) : { provider };
}

/** CUDA 13 no longer compiles for Volta (7.0) and older cards. */
const LEAST_CAPABILITY = 75;

const cudaDevice = ({ deviceId, memoryBytes }: DeviceSettings) =>
  ({ provider: 'cuda', deviceId: deviceId ?? 0, memoryBytes }) as const;

function requireDevice(device: OrtDevice, machine: Machine): void {
  if (device.provider === 'cuda') requireCuda(device.deviceId, machine);
}

/**
 * Requires the CUDA provider, its libraries, a driver that is new enough, and the card.
 * @returns the driver and the version of CUDA that the provider was built for
 * @throws ModelError one line with the next step
 */
export function requireCuda(
  deviceId: number,
  { platform, arch, cuda, driver }: Machine,
): CudaDriver & { readonly needed: number | null } {
  if (platform !== 'linux' || arch !== 'x64') {
    throw new ModelError(`the CUDA provider is for Linux on x64, not for ${platform} on ${arch}`);
  }
  const missing = missingCudaLibraries(cuda);
  if (missing.length > 0) throw new ModelError(`CUDA lacks ${missing.join(', ')}; run continuo cuda-install`);
  const driverInfo = ask(driver);
  const { version, cards } = driverInfo;
  const needed = cudaVersion(cuda);
  if (needed !== null && Math.floor(version / 1000) < needed) {
    throw new ModelError(
      `the NVIDIA driver supports CUDA ${versionText(version)}, but the CUDA provider needs ${needed}; update the driver, then check it with nvidia-smi`,
    );
  }
  const card = cards[deviceId];
  if (card !== undefined) {
    requireCapability(card, needed);
    return { ...driverInfo, needed };
  }
  const names = cards.map(({ name }, id) => `${id} (${name})`).join(', ');
  throw new ModelError(
    cards.length === 0
      ? 'the NVIDIA driver finds no CUDA card; check it with nvidia-smi -L and CUDA_VISIBLE_DEVICES'
      : `CUDA card ${deviceId} does not exist; set CONTINUO_DEVICE_ID to one of: ${names}`,
  );
}

/** @throws ModelError if a provider for this version of CUDA has no kernels for the card */
function requireCapability({ name, capability: [major, minor] }: CudaCard, version: number | null): void {
  if (version === null || version < 13 || 10 * major + minor >= LEAST_CAPABILITY) return;
  throw new ModelError(
    `${name} has compute capability ${major}.${minor}, but CUDA ${version} begins at 7.5 (Turing); use the provider webgpu or cpu`,
  );
}

/** 13020 = "13.2". */
const versionText = (version: number): string =>
  `${Math.floor(version / 1000)}.${Math.floor((version % 1000) / 10)}`;

function ask<T>(driver: () => T): T {
  try {
    return driver();
  } catch (error) {
    throw new ModelError(`the NVIDIA driver ${errorMessage(error)}; check it with nvidia-smi`);
  }
}

/** Returns the name of a card and its free memory. @throws ModelError */
export function cardOf({ deviceId }: { readonly deviceId: number }, { driver }: Pick<Machine, 'driver'>) {
  return ask(() => {
    const { cards, freeBytes } = driver();
    return { name: `${cards[deviceId]?.name} (CUDA card ${deviceId})`, freeBytes: freeBytes(deviceId) };
  });
}

/**
 * Returns the device with the libraries that a graph needs on it.
 * @throws ModelError if one is missing
 */
export function deviceFor(graph: OnnxGraph, device: OrtDevice, { cuda }: Machine): OrtDevice {
  if (device.provider !== 'cuda') return device;
  const operator = cudnnOperator(graph);
  if (operator === undefined) return device;
  const missing = missingCudnn(cuda);
  if (missing === null) return { ...device, cudnn: true };
  throw new ModelError(
    `the operator ${operator} needs cuDNN on CUDA: ${missing}; run continuo cuda-install --cudnn`,
  );
}

/** Outside Linux, WebGPU adapters are normally GPUs, and Vulkan is not there for the check. */
function requireGpu({ platform, adapters }: Machine): void {
  if (platform !== 'linux') return;
  const available = adapters();
  if (available.some(({ isGpu }) => isGpu)) return;
  const names = available.map(({ name }) => name).join(', ');
  throw new ModelError(available.length === 0 ? 'there is no Vulkan device' : `${names} is not a GPU`);
}

/**
 * Returns what CUDA runs on: the provider with the version that it needs, and the driver with the version
 * that it has.
 * @throws ModelError one line with the next step
 */
export function checkCuda(machine: Machine): string[] {
  const { needed, version, cards } = requireCuda(0, machine);
  return [
    `CUDA provider in ${machine.cuda.folder}, for CUDA ${needed ?? 'of any version'}`,
    `NVIDIA driver for CUDA ${versionText(version)} with ${cards.map(({ name }, id) => `card ${id} (${name})`).join(', ')}`,
    'CUDA can be used: CONTINUO_PROVIDER=cuda',
  ];
}
