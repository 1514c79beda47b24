import koffi, { type LibraryHandle } from 'koffi';
import type { DeviceTurns } from '../../process/engine-locks.ts';
import { RuntimeFault } from '../model-runner.ts';
import { CudaCopies } from './cuda-copies.ts';
import { type CudaCall, CudaStream } from './cuda-stream.ts';
import { cudaFaultKind } from './ort-fault.ts';
import { openLibrary } from './ort-library.ts';

/** A card as the driver describes it. */
export interface CudaCard {
  readonly name: string;
  /** Its compute capability: [7, 5] = 7.5. */
  readonly capability: readonly [major: number, minor: number];
}

/** The NVIDIA driver, asked through libcuda, which it installs itself. */
export interface CudaDriver {
  /** The newest CUDA version that it supports: 12.4 = 12040. */
  readonly version: number;
  /** By device id. */
  readonly cards: readonly CudaCard[];
  /** Free memory of a card in bytes, now. */
  freeBytes(deviceId: number): number;
}

interface OpenedDriver extends CudaDriver {
  /** The caller disposes it. */
  stream(deviceId: number, turns?: DeviceTurns): CudaStream;
  /**
   * Returns copies in the memory of a card. The caller disposes them.
   * @param stream absent = one of their own
   */
  copies(deviceId: number, turns?: DeviceTurns, stream?: CudaStream): CudaCopies;
}

const DRIVER = 'libcuda.so.1';

const NAME_BYTES = 256;
/** Values of CUdevice_attribute in cuda.h. */
const CAPABILITY = { major: 75, minor: 76 } as const;

/** @throws Error that completes "the NVIDIA driver …" */
export function openCudaDriver(file = DRIVER): OpenedDriver {
  let library: LibraryHandle;
  try {
    library = openLibrary(file);
  } catch {
    throw new Error(`is missing (${file})`);
  }
  const call = callerOf(library);
  call('cuInit', ['unsigned int'], 0);
  const count = integer();
  call('cuDeviceGetCount', ['int *'], count);
  const version = integer();
  call('cuDriverGetVersion', ['int *'], version);
  const cards = Array.from({ length: count[0]! }, (_, deviceId) => {
    const device = deviceOf(call, deviceId);
    const name = Buffer.alloc(NAME_BYTES);
    call('cuDeviceGetName', ['void *', 'int', 'int'], name, NAME_BYTES, device);
    const attribute = (id: number) => {
      const value = integer();
      call('cuDeviceGetAttribute', ['int *', 'int', 'int'], value, id, device);
      return value[0]!;
    };
    const capability = [attribute(CAPABILITY.major), attribute(CAPABILITY.minor)] as const;
    return { name: name.toString('utf8', 0, name.indexOf(0)), capability };
  });
  const checked = callerOf(library, 'the NVIDIA driver ');
  const streamOf = (deviceId: number, turns?: DeviceTurns) =>
    new CudaStream(checked, deviceOf(call, deviceId), turns);
  return {
    version: version[0]!,
    cards,
    freeBytes: (deviceId) => freeBytes(call, deviceId),
    stream: streamOf,
    copies: (deviceId, turns, stream) =>
      new CudaCopies(checked, stream ?? streamOf(deviceId, turns), stream === undefined),
  };
}

const integer = () => new Int32Array(1);

/** Calls a function of the driver API. Each returns a CUresult, 0 = success. */
function callerOf(library: LibraryHandle, subject = ''): CudaCall {
  const text = library.func('cuGetErrorString', 'int', ['int', koffi.out(koffi.pointer('const char *'))]);
  const functions = new Map<string, ReturnType<LibraryHandle['func']>>();
  return (name, types, ...values) => {
    const native = functions.get(name) ?? library.func(name, 'int', [...types]);
    functions.set(name, native);
    const result: number = native(...values);
    if (result === 0) return;
    const description: [string | null] = [null];
    text(result, description);
    const message = `${subject}refuses ${name} with error ${result}: ${description[0] ?? 'unknown'}`;
    throw new RuntimeFault(message, `CUDA ${result}`, cudaFaultKind(result));
  };
}

function deviceOf(call: CudaCall, deviceId: number): number {
  const device = integer();
  call('cuDeviceGet', ['int *', 'int'], device, deviceId);
  return device[0]!;
}

/** Uses the card's primary context, in which ONNX Runtime also works. */
function freeBytes(call: CudaCall, deviceId: number): number {
  const device = deviceOf(call, deviceId);
  const context = new BigUint64Array(1);
  call('cuDevicePrimaryCtxRetain', ['void *', 'int'], context, device);
  try {
    call('cuCtxPushCurrent_v2', ['void *'], context[0]!);
    try {
      const [free, total] = [new BigUint64Array(1), new BigUint64Array(1)];
      call('cuMemGetInfo_v2', ['void *', 'void *'], free, total);
      return Number(free[0]);
    } finally {
      call('cuCtxPopCurrent_v2', ['void *'], context);
    }
  } finally {
    call('cuDevicePrimaryCtxRelease_v2', ['int'], device);
  }
}
