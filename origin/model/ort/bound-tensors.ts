import { ElementType } from '../onnx/onnx-graph.ts';

/** What runners need of ONNX Runtime, native or in a browser. */

/** An address, or a handle. */
export type Pointer = bigint;

/** Memory of JavaScript that ONNX Runtime reads and writes. */
export interface HostMemory {
  /** Returns zeros. Tensors that are read and written in place must have memory from here. */
  allocate(bytes: number): Uint8Array<ArrayBuffer>;
  /** Address of the first byte of a buffer or of a view; valid while the buffer is referenced. */
  addressOf(memory: ArrayBuffer | ArrayBufferView): Pointer;
  /** Gives whole pages of a view back to the system, which then read as zeros; only on Linux. */
  releasePages(memory: Uint8Array): void;
}

interface TensorAt {
  readonly address: Pointer;
  readonly elementType: number;
  readonly elementBytes: number;
  readonly dimensions: readonly number[];
}

/** Memory of JavaScript as a tensor. A binding keeps the owner of the memory alive. */
interface HostTensor extends TensorAt {
  readonly owner: ArrayBufferView;
}

/** Memory of a device as a tensor. The caller keeps it until the last run. */
export interface DeviceTensor extends TensorAt {
  /** OrtMemoryInfo. */
  readonly memory: Pointer;
}

export type BoundTensor = HostTensor | DeviceTensor;

export type Elements = Float32Array<ArrayBuffer> | BigInt64Array<ArrayBuffer> | Int32Array<ArrayBuffer>;

export const elementTypeOf = (array: Elements): number => {
  if (array instanceof Float32Array) return ElementType.float32;
  return array instanceof Int32Array ? ElementType.int32 : ElementType.int64;
};

/** Describes a typed array as a tensor in CPU memory. */
export const arrayTensor = (api: HostMemory, array: Elements, dimensions: readonly number[]): HostTensor => ({
  owner: array,
  address: api.addressOf(array),
  elementType: elementTypeOf(array),
  elementBytes: array.BYTES_PER_ELEMENT,
  dimensions,
});

/** Bound inputs and outputs of one kind of run. Between runs only the content of the memory changes. */
export interface RunBinding {
  input(name: string, tensor: BoundTensor): void;
  output(name: string, tensor: BoundTensor): void;
  /** Binds an input and outputs to the same memory. */
  inPlace(input: string, outputs: readonly string[], tensor: BoundTensor): void;
  dispose(): void;
  [Symbol.dispose](): void;
}

/** Binds tensors. If one fails, the binding is disposed. */
export function boundTo<B extends RunBinding>(binding: B, bind: (binding: B) => void): B {
  try {
    bind(binding);
    return binding;
  } catch (error) {
    binding.dispose();
    throw error;
  }
}

/** The part of a session that runners use. */
export interface RunSession {
  readonly api: HostMemory;
  /** True if inputs are copied when they are bound instead of being read during the run. */
  readonly copiesInputs: boolean;
  /** Creates a binding and binds its tensors. If one fails, the binding is disposed. */
  bound(bind: (binding: RunBinding) => void): RunBinding;
  /** Runs on the calling thread. */
  run(binding: RunBinding): void;
  /**
   * Runs beside the calling thread, where it can.
   * @throws RunTerminated if the signal was aborted before the run, or stopped it
   */
  runAsync(binding: RunBinding, signal: AbortSignal): Promise<void>;
  dispose(): void;
}
