import { existsSync } from 'node:fs';
import { join } from 'node:path';

/** Version of ONNX Runtime. It crashes with providers of another version. */
export const ONNX_RUNTIME_VERSION = '1.30.0';
export const CUDA_PROVIDER = 'libonnxruntime_providers_cuda.so';

type CudaEnvironment = Readonly<
  Partial<Record<'ORT_CUDA_PATH' | 'XDG_CACHE_HOME' | 'HOME', string | undefined>>
>;

/** Returns the folder that `continuo cuda-install` fills; null if the user has no home directory. */
export function installedCudaFolder({ XDG_CACHE_HOME, HOME }: CudaEnvironment): string | null {
  const cache = XDG_CACHE_HOME || (HOME && join(HOME, '.cache'));
  return cache ? join(cache, 'continuo', `cuda-${ONNX_RUNTIME_VERSION}`) : null;
}

/**
 * Returns the folder of the CUDA provider, if it is not beside ONNX Runtime: ORT_CUDA_PATH, or the installed
 * one.
 */
export function cudaFolder(environment: CudaEnvironment): string | undefined {
  if (environment.ORT_CUDA_PATH) return environment.ORT_CUDA_PATH;
  const installed = installedCudaFolder(environment);
  return installed !== null && existsSync(join(installed, CUDA_PROVIDER)) ? installed : undefined;
}
