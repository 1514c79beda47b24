import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { errorMessage } from '../../../shared/error-details.ts';
import { type OnnxGraph, withBranches } from '../onnx/onnx-graph.ts';
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

/** Operators that the CUDA provider runs with cuDNN. It opens that library at the first of them, not when it is loaded. */
const CUDNN_OPERATORS =
  /^(Conv|ConvTranspose|FusedConv|NhwcConv|\w+Pool|BatchNormalization|InstanceNormalization|LRN|RNN|GRU|LSTM|Einsum|Reduce\w+|Arg(Max|Min))$/;
const CUDNN = 'libcudnn.so.9';

/** Returns the first operator that needs cuDNN; undefined if the provider can run the graph without it. */
export function cudnnOperator(graph: OnnxGraph): string | undefined {
  const operators = [...withBranches(graph)].flatMap(({ nodes }) => nodes.map(({ operator }) => operator));
  return operators.find((operator) => CUDNN_OPERATORS.test(operator));
}

/** Returns one line if cuDNN is missing or does not load; else null. */
export const missingCudnn = (files: CudaFiles): string | null => problemOf(CUDNN, files);

/**
 * Returns one line per library that is missing or does not load, with its package; empty if the provider can be loaded.
 * Libraries in the provider's folder take precedence over the system's.
 */
export function missingCudaLibraries(files: CudaFiles): string[] {
  const { folder } = files;
  const missing = PROVIDER_FILES.filter((file) => !existsSync(join(folder, file)));
  if (missing.length > 0) return missing.map((file) => `${file} (${PROVIDER_SOURCE}): not in ${folder}`);
  let needed: string[];
  try {
    needed = neededLibraries(join(folder, PROVIDER));
  } catch (error) {
    return [`${PROVIDER} (${PROVIDER_SOURCE}): ${errorMessage(error)}`];
  }
  return needed.flatMap((name) => problemOf(name, files) ?? []);
}

/** Returns the major version of CUDA that the provider was built for; null if it does not say. */
export function cudaVersion({ folder }: Pick<CudaFiles, 'folder'>): number | null {
  const runtime = neededLibraries(join(folder, PROVIDER)).find((name) => name.startsWith('libcudart.so.'));
  return runtime === undefined ? null : Number(/\d+$/.exec(runtime)?.[0]);
}

function problemOf(name: string, { folder, map }: CudaFiles): string | null {
  const beside = join(folder, name);
  const problem = map(existsSync(beside) ? beside : name);
  return problem === null ? null : `${name} (${sourceOf(name)}): ${problem.replace(`${name}: `, '')}`;
}

function sourceOf(name: string): string {
  const source = SOURCES.find(([prefix]) => name.startsWith(prefix))?.[1];
  if (source === undefined) return 'the system';
  const version = /\.so\.(\d+)/.exec(name)?.[1] ?? '';
  return source === DRIVER ? source : `${source} ${version}`.trim();
}
