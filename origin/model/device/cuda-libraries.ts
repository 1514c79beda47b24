import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { errorMessage } from '@continuo/shared/error-details.ts';
import { type OnnxGraph, withBranches } from '../onnx/onnx-graph.ts';
import { CUDA_PROVIDER, ONNX_RUNTIME_VERSION } from '../ort/cuda-folder.ts';
import { neededLibraries, readOnlyData } from './elf-file.ts';

/** Checks the libraries of the CUDA provider before ONNX Runtime loads it, to name all missing. */

const PROVIDER_FILES = ['libonnxruntime_providers_shared.so', CUDA_PROVIDER];
/** cuda-driver.ts checks it. */
const DRIVER = 'libcuda.so';

/** The package of a library, by the prefix of its name. */
const SOURCES: readonly (readonly [prefix: string, source: string])[] = [
  ['libcudart.so', 'the CUDA runtime'],
  ['libcublas', 'cuBLAS'],
  ['libcudnn', 'cuDNN'],
  ['libcufft', 'cuFFT'],
  ['libcurand', 'cuRAND'],
  ['libnvrtc', 'NVRTC'],
  ['libnvJitLink', 'nvJitLink'],
];

const SYSTEM = 'the system';

export interface CudaFiles {
  /** Folder of the provider. */
  readonly folder: string;
  /** Maps a library by path or name. Returns null, or the loader's error. */
  map(file: string): string | null;
}

/** Operators that the CUDA provider runs with cuDNN. The first of them opens that library. */
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
 * Returns one line per library that is missing, of another version or does not load, with its package; empty
 * if the provider can be loaded with a driver. Libraries in the provider's folder take precedence over the
 * system's.
 */
export function missingCudaLibraries(files: CudaFiles): string[] {
  const { folder } = files;
  const missing = PROVIDER_FILES.filter((file) => !existsSync(join(folder, file)));
  if (missing.length > 0) return missing.map((file) => `${file}: not in ${folder}`);
  try {
    const provider = join(folder, CUDA_PROVIDER);
    const version = otherVersion(provider);
    if (version !== null) return [`${provider} of ONNX Runtime ${ONNX_RUNTIME_VERSION}: it is of ${version}`];
    const needed = neededLibraries(provider).filter((name) => !name.startsWith(DRIVER));
    return needed.flatMap((name) => problemOf(name, files) ?? []);
  } catch (error) {
    return [`${CUDA_PROVIDER}: ${errorMessage(error)}`];
  }
}

/** Returns the major version of CUDA that the provider was built for; null if it does not say. */
export function cudaVersion({ folder }: Pick<CudaFiles, 'folder'>): number | null {
  const runtime = neededLibraries(join(folder, CUDA_PROVIDER)).find((name) =>
    name.startsWith('libcudart.so.'),
  );
  return runtime === undefined ? null : Number(/\d+$/.exec(runtime)?.[0]);
}

/** Version of a provider of another ONNX Runtime; else null. Providers contain it as a C string. */
function otherVersion(provider: string): string | null {
  const constants = readOnlyData(provider);
  if (constants.includes(`\0${ONNX_RUNTIME_VERSION}\0`)) return null;
  return /\0(\d+\.\d+\.\d+)\0/.exec(constants.toString('latin1'))?.[1] ?? 'an unknown version';
}

function problemOf(name: string, { folder, map }: CudaFiles): string | null {
  const beside = join(folder, name);
  const problem = map(existsSync(beside) ? beside : name);
  if (problem === null) return null;
  const otherMajor = otherMajors(name).find((library) => map(library) === null);
  const hint = otherMajor === undefined ? '' : `; ${otherMajor} is there`;
  return `${name} (${sourceOf(name)}): ${problem.replace(`${name}: `, '')}${hint}`;
}

/** Returns the names of the library's two previous and two next versions. */
function otherMajors(name: string): string[] {
  const [, stem, major] = /^(.*\.so\.)(\d+)$/.exec(name) ?? [];
  if (stem === undefined || sourceOf(name) === SYSTEM) return [];
  return [-1, 1, -2, 2].map((step) => `${stem}${Number(major) + step}`);
}

function sourceOf(name: string): string {
  const source = SOURCES.find(([prefix]) => name.startsWith(prefix))?.[1];
  if (source === undefined) return SYSTEM;
  const version = /\.so\.(\d+)/.exec(name)?.[1] ?? '';
  return `${source} ${version}`.trim();
}
