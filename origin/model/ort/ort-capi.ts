import koffi, { type LibraryHandle, type TypeObject } from 'koffi';
import type { HostMemory, Pointer } from './bound-tensors.ts';
import { cudaFolder, ONNX_RUNTIME_VERSION } from './cuda-folder.ts';
import { ortFault } from './ort-fault.ts';
import { loadPermanently, onnxRuntimeLibrary, pageRelease } from './ort-library.ts';

/**
 * The part of ONNX Runtime's C API that the runner needs, called through koffi in the library that
 * onnxruntime-node ships. The JavaScript binding copies every output and blocks its thread; this one keeps
 * the KV cache in place.
 */

/** 'out' and 'outString' are a trailing pointer to a result, which becomes the return value. */
interface ArgumentTypes {
  readonly int: number;
  readonly size: number;
  readonly string: string;
  /** A handle, or the address of memory that the caller keeps alive. */
  readonly pointer: Pointer | null;
  readonly int64s: BigInt64Array;
  readonly strings: readonly string[];
}

/**
 * Maps a name to its index in struct OrtApi (append-only, onnxruntime_c_api.h) and its parameters. All return
 * OrtStatus*, except the release functions, which return nothing.
 */
const STATUS_FUNCTIONS = {
  CreateEnv: [3, 'int', 'string', 'out'],
  CreateSessionFromArray: [8, 'pointer', 'pointer', 'size', 'pointer', 'out'],
  CreateSessionOptions: [10, 'out'],
  DisableMemPattern: [17, 'pointer'],
  SetSessionGraphOptimizationLevel: [23, 'pointer', 'int'],
  SetIntraOpNumThreads: [24, 'pointer', 'int'],
  CreateRunOptions: [39, 'out'],
  RunOptionsSetTerminate: [46, 'pointer'],
  RunOptionsUnsetTerminate: [47, 'pointer'],
  CreateTensorWithDataAsOrtValue: [49, 'pointer', 'pointer', 'size', 'int64s', 'size', 'int', 'out'],
  MemoryInfoGetName: [71, 'pointer', 'outString'],
  CreateMemoryInfo: [68, 'string', 'int', 'int', 'int', 'out'],
  CreateCpuMemoryInfo: [69, 'int', 'int', 'out'],
  AllocatorAlloc: [75, 'pointer', 'size', 'out'],
  AllocatorFree: [76, 'pointer', 'pointer'],
  AddSessionConfigEntry: [130, 'pointer', 'string', 'string'],
  CreateAllocator: [131, 'pointer', 'pointer', 'out'],
  RunWithBinding: [133, 'pointer', 'pointer', 'pointer'],
  CreateIoBinding: [134, 'pointer', 'out'],
  BindInput: [136, 'pointer', 'string', 'pointer'],
  BindOutput: [137, 'pointer', 'string', 'pointer'],
  AddRunConfigEntry: [165, 'pointer', 'string', 'string'],
  AppendExecutionProviderCuda: [204, 'pointer', 'pointer'],
  CreateCudaOptions: [205, 'out'],
  UpdateCudaOptions: [206, 'pointer', 'strings', 'strings', 'size'],
  AppendExecutionProvider: [216, 'pointer', 'string', 'strings', 'strings', 'size'],
  SessionGetMemoryInfoForInputs: [380, 'pointer', 'int64s', 'size'],
} as const;

const RELEASE_FUNCTIONS = {
  ReleaseEnv: 92,
  ReleaseMemoryInfo: 94,
  ReleaseSession: 95,
  ReleaseValue: 96,
  ReleaseRunOptions: 97,
  ReleaseSessionOptions: 100,
  ReleaseAllocator: 132,
  ReleaseIoBinding: 135,
  ReleaseCudaOptions: 208,
} as const;

const GET_ERROR_CODE = 1;
const GET_ERROR_MESSAGE = 2;
const RELEASE_STATUS = 93;
const API_VERSION = 23;
const POINTER_SIZE = 8;

type StatusFunctions = typeof STATUS_FUNCTIONS;
type ParametersOf<S> = S extends readonly [infer First, ...infer Rest]
  ? First extends keyof ArgumentTypes
    ? [ArgumentTypes[First], ...ParametersOf<Rest>]
    : ParametersOf<Rest>
  : [];
type Result<S> = S extends readonly [...infer _, 'out']
  ? Pointer
  : S extends readonly [...infer _, 'outString']
    ? string
    : undefined;

/** Every function throws a RuntimeFault with ONNX Runtime's message if its status is not OK. */
export type OrtApi = {
  readonly [Name in keyof StatusFunctions]: (
    ...args: ParametersOf<StatusFunctions[Name]>
  ) => Result<StatusFunctions[Name]>;
} & { readonly [Name in keyof typeof RELEASE_FUNCTIONS]: (handle: Pointer) => void } & HostMemory & {
    /** RunWithBinding on a pool thread, without blocking the event loop. */
    runWithBindingAsync(session: Pointer, options: Pointer, binding: Pointer): Promise<void>;
    /** Kept here because koffi unloads a library when its handle is collected. */
    readonly library: LibraryHandle;
  };

const NATIVE_TYPES = {
  int: 'int',
  size: 'size_t',
  string: 'const char *',
  pointer: 'void *',
  int64s: 'int64_t *',
  strings: 'const char **',
} as const;
const OUT_TYPES = { out: 'void *', outString: 'const char *' } as const;
type OutType = keyof typeof OUT_TYPES;
type InType = keyof typeof NATIVE_TYPES;

/**
 * Loads the library. Each call returns a new table; the library is loaded once per process.
 * @throws Error if the library is of another version, whose table and bits are others
 */
export function openOrtApi(file = onnxRuntimeLibrary(cudaFolder(process.env))): OrtApi {
  const library = loadPermanently(file);
  const base: Pointer = library.func('OrtGetApiBase', 'void *', [])();
  const getApi = functionAt(base, 0, 'void *', ['uint32_t']);
  const version: string = functionAt(base, 1, 'const char *', [])();
  if (version !== ONNX_RUNTIME_VERSION) {
    throw new Error(`${file} is ONNX Runtime ${version}, but ${ONNX_RUNTIME_VERSION} is needed; run npm ci`);
  }
  const api: Pointer = getApi(API_VERSION);

  const getCode = functionAt(api, GET_ERROR_CODE, 'int', ['void *']);
  const getMessage = functionAt(api, GET_ERROR_MESSAGE, 'const char *', ['void *']);
  const releaseStatus = functionAt(api, RELEASE_STATUS, 'void', ['void *']);
  const check = (status: Pointer | null) => {
    if (status === null) return;
    const fault = ortFault(getCode(status), getMessage(status));
    releaseStatus(status);
    throw fault;
  };

  const table: Record<string, unknown> = {
    library,
    allocate: (bytes: number) => new Uint8Array(new ArrayBuffer(bytes)),
    addressOf: koffi.address,
    releasePages: pageRelease(),
  };
  for (const [name, [index, ...parameters]] of Object.entries(STATUS_FUNCTIONS)) {
    const types = parameters.map((type) =>
      type in OUT_TYPES ? koffi.out(koffi.pointer(OUT_TYPES[type as OutType])) : NATIVE_TYPES[type as InType],
    );
    const native = functionAt(api, index, 'void *', types);
    const returns = (parameters.at(-1) ?? '') in OUT_TYPES;
    table[name] = returns ? returning(native, check) : (...args: unknown[]) => check(native(...args));
    if (name === 'RunWithBinding') table.runWithBindingAsync = asynchronous(native, check);
  }
  for (const [name, index] of Object.entries(RELEASE_FUNCTIONS)) {
    table[name] = functionAt(api, index, 'void', ['void *']);
  }
  return table as unknown as OrtApi;
}

type NativeFunction = ReturnType<LibraryHandle['func']>;
type Check = (status: Pointer | null) => void;

function returning(native: NativeFunction, check: Check) {
  return (...args: unknown[]): Pointer | string => {
    const result: [Pointer | string | null] = [null];
    check(native(...args, result));
    if (result[0] === null) throw new Error('ONNX Runtime returned no object');
    return result[0];
  };
}

function asynchronous(native: NativeFunction, check: Check) {
  return (...args: unknown[]) =>
    new Promise<void>((resolve, reject) => {
      native.async(...args, (failure: Error | null, status: Pointer | null) => {
        if (failure !== null) return reject(failure);
        try {
          check(status);
          resolve();
        } catch (error) {
          reject(error);
        }
      });
    });
}

function functionAt(
  table: Pointer,
  index: number,
  result: string,
  parameters: (string | TypeObject | ReturnType<typeof koffi.out>)[],
): NativeFunction {
  const address = koffi.decode(table, index * POINTER_SIZE, 'void *');
  return koffi.decode(address, koffi.proto(result, parameters));
}
