import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { errorMessage } from '../../../shared/error-details.ts';
import { neededLibraries } from './elf-needed.ts';

/** Checks the libraries of the CUDA provider before ONNX Runtime loads it, so that all missing ones are named at once. */

const PROVIDER = 'libonnxruntime_providers_cuda.so';
const PROVIDER_FILES = ['libonnxruntime_providers_shared.so', PROVIDER];
const PROVIDER_SOURCE = 'npm run cuda:install, or ORT_CUDA_PATH';

const DRIVER = 'the NVIDIA driver';

/** The package of a library, by the prefix of its name. */
const SOURCES: readonly (readonly [prefix: string, source: string])[] = [
  ['libcuda.so', DRIVER],
  ['libcudart.so', 'the CUDA runtime'],
  ['libcublas', 'cuBLAS'],
  ['libcudnn', 'cuDNN'],
  ['libcufft', 'cuFFT'],
  ['libcurand', 'cuRAND'],
  ['libnvrtc', 'NVRTC'],
  ['libnvJitLink', 'nvJitLink'],
];

export interface CudaFiles {
  /** Folder of the provider. */
  readonly folder: string;
  /** Maps a library by path or name. Returns null, or the loader's error. */
  map(file: string): string | null;
}

/**
 * Returns one line per library that is missing or does not load, with its package; empty if the provider can be loaded.
 * Libraries in the provider's folder take precedence over the system's.
 */
export function missingCudaLibraries({ folder, map }: CudaFiles): string[] {
  const missing = PROVIDER_FILES.filter((file) => !existsSync(join(folder, file)));
  if (missing.length > 0) return missing.map((file) => `${file} (${PROVIDER_SOURCE}): not in ${folder}`);
  let needed: string[];
  try {
    needed = neededLibraries(join(folder, PROVIDER));
  } catch (error) {
    return [`${PROVIDER} (${PROVIDER_SOURCE}): ${errorMessage(error)}`];
  }
  return needed.flatMap((name) => {
    const beside = join(folder, name);
    const problem = map(existsSync(beside) ? beside : name);
    return problem === null ? [] : [`${name} (${sourceOf(name)}): ${problem.replace(`${name}: `, '')}`];
  });
}

function sourceOf(name: string): string {
  const source = SOURCES.find(([prefix]) => name.startsWith(prefix))?.[1];
  if (source === undefined) return 'the system';
  const version = /\.so\.(\d+)/.exec(name)?.[1] ?? '';
  return source === DRIVER ? source : `${source} ${version}`.trim();
}
