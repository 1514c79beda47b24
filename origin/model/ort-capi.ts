import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import koffi, { type LibraryHandle, type TypeObject } from 'koffi';

/**
 * The part of ONNX Runtime's C API that the runner needs, called through koffi in the very library onnxruntime-node
 * ships. The JavaScript binding copies every output and blocks its thread; this one keeps the KV cache in place.
 */

export type Pointer = bigint;

/** 'out' is the trailing pointer-to-result of a creating function; it becomes the return value. */
interface ArgumentTypes {
  readonly int: number;
  readonly size: number;
  readonly string: string;
  /** A handle, or the address of memory the caller keeps alive. */
  readonly pointer: Pointer | null;
  readonly int64s: BigInt64Array;
  readonly strings: readonly string[];
}

/**
 * Name → position in struct OrtApi (append-only, onnxruntime_c_api.h) and parameters. All return OrtStatus*, save the
 * releasing ones, which return nothing.
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
  AppendExecutionProviderCuda: [204, 'pointer', 'pointer'],
  CreateCudaOptions: [205, 'out'],
  UpdateCudaOptions: [206, 'pointer', 'strings', 'strings', 'size'],
  AppendExecutionProvider: [216, 'pointer', 'string', 'strings', 'strings', 'size'],
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

const GET_ERROR_MESSAGE = 2;
const RELEASE_STATUS = 93;
const API_VERSION = 22;
const POINTER_SIZE = 8;
/** Operators of large models use more stack than koffi's 128 KiB for asynchronous calls. */
const ASYNC_STACK = 4 << 20;

type StatusFunctions = typeof STATUS_FUNCTIONS;
type ParametersOf<S> = S extends readonly [infer First, ...infer Rest]
  ? First extends keyof ArgumentTypes
    ? [ArgumentTypes[First], ...ParametersOf<Rest>]
    : ParametersOf<Rest>
  : [];
type Result<S> = S extends readonly [...infer _, 'out'] ? Pointer : undefined;

/** Every function throws an Error with ONNX Runtime's own message when its status is not OK. */
export type OrtApi = {
  readonly [Name in keyof StatusFunctions]: (
    ...args: ParametersOf<StatusFunctions[Name]>
  ) => Result<StatusFunctions[Name]>;
} & { readonly [Name in keyof typeof RELEASE_FUNCTIONS]: (handle: Pointer) => void } & {
  /** RunWithBinding on a pool thread; the event loop turns meanwhile. */
  runWithBindingAsync(session: Pointer, options: Pointer, binding: Pointer): Promise<void>;
  /** Address of the first byte of a buffer or of a view; valid while the buffer is referenced. */
  addressOf(memory: ArrayBuffer | ArrayBufferView): Pointer;
  readonly version: string;
  /** Referenced from here because koffi unloads a library with its handle. */
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

/** Loads the library. Each call gives a table of its own; the library itself is loaded once per process. */
export function openOrtApi(): OrtApi {
  if ((koffi.config().async_stack_size ?? 0) < ASYNC_STACK) koffi.config({ async_stack_size: ASYNC_STACK });
  const library = loadForGood(libraryPath());
  const base: Pointer = library.func('OrtGetApiBase', 'void *', [])();
  const getApi = functionAt(base, 0, 'void *', ['uint32_t']);
  const version: string = functionAt(base, 1, 'const char *', [])();
  const api: Pointer | null = getApi(API_VERSION);
  if (api === null) throw new Error(`ONNX Runtime ${version} does not offer C API version ${API_VERSION}`);

  const getMessage = functionAt(api, GET_ERROR_MESSAGE, 'const char *', ['void *']);
  const releaseStatus = functionAt(api, RELEASE_STATUS, 'void', ['void *']);
  const check = (status: Pointer | null) => {
    if (status === null) return;
    const message: string = getMessage(status);
    releaseStatus(status);
    throw new Error(message);
  };

  const table: Record<string, unknown> = { version, library, addressOf: koffi.address };
  for (const [name, [index, ...parameters]] of Object.entries(STATUS_FUNCTIONS)) {
    const creates = parameters.at(-1) === 'out';
    const types = parameters.map((type) =>
      type === 'out' ? koffi.out(koffi.pointer('void *')) : NATIVE_TYPES[type],
    );
    const native = functionAt(api, index, 'void *', types);
    table[name] = creates ? creating(native, check) : (...args: unknown[]) => check(native(...args));
    if (name === 'RunWithBinding') table.runWithBindingAsync = asynchronous(native, check);
  }
  for (const [name, index] of Object.entries(RELEASE_FUNCTIONS)) {
    table[name] = functionAt(api, index, 'void', ['void *']);
  }
  return table as OrtApi;
}

type NativeFunction = ReturnType<LibraryHandle['func']>;
type Check = (status: Pointer | null) => void;

function creating(native: NativeFunction, check: Check) {
  return (...args: unknown[]): Pointer => {
    const result: [Pointer | null] = [null];
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

/**
 * Loads a library that stays mapped until the process ends. koffi unloads one with its handle, that is at a garbage
 * collection or at the end of a worker thread, while functions taken from it and ONNX Runtime's threads live on.
 */
function loadForGood(file: string): LibraryHandle {
  const NOW = 2;
  const NO_DELETE: Partial<Record<NodeJS.Platform, number>> = { linux: 0x1000, darwin: 0x80 };
  const noDelete = NO_DELETE[process.platform];
  if (noDelete !== undefined) {
    koffi.load(null).func('dlopen', 'void *', ['const char *', 'int'])(file, NOW | noDelete);
  }
  return koffi.load(file);
}

function libraryPath(): string {
  const require = createRequire(import.meta.url);
  const { platform, arch } = process;
  const file =
    platform === 'win32'
      ? 'onnxruntime.dll'
      : platform === 'darwin'
        ? 'libonnxruntime.1.30.0.dylib'
        : 'libonnxruntime.so.1';
  return join(dirname(require.resolve('onnxruntime-node')), '../bin/napi-v6', platform, arch, file);
}
