import type { Pointer } from './bound-tensors.ts';
import type { CudaStream } from './cuda-stream.ts';
import type { OrtApi } from './ort-capi.ts';

/** The device of a session. */
export type OrtDevice =
  | { readonly provider: 'cpu' }
  | {
      readonly provider: 'cuda';
      readonly deviceId: number;
      readonly memoryBytes: number | null;
      /** Whether the graph needs cuDNN; default false. */
      readonly cudnn?: boolean;
      /** Whether runs can be captured as CUDA graphs; default false. */
      readonly graphs?: boolean;
      /** The stream of all runs; absent = ONNX Runtime creates one. */
      readonly stream?: CudaStream;
    }
  | { readonly provider: 'webgpu' };

/** ONNX Runtime's names of device memory. */
const MEMORY_NAMES = { cpu: 'Cpu', cuda: 'Cuda', webgpu: 'WebGPU_Buffer' } as const;
const DEVICE_ALLOCATOR = 0;
const DEFAULT_MEMORY = 0;

/** Adds a provider before the CPU provider, which runs the operators that the other lacks. */
export function appendProvider(api: OrtApi, sessionOptions: Pointer, device: OrtDevice): void {
  if (device.provider === 'webgpu') api.AppendExecutionProvider(sessionOptions, 'WebGPU', [], [], 0);
  if (device.provider !== 'cuda') return;
  const options = api.CreateCudaOptions();
  try {
    const entries = Object.entries(cudaOptions(device));
    const keys = entries.map(([key]) => key);
    const values = entries.map(([, value]) => value);
    api.UpdateCudaOptions(options, keys, values, entries.length);
    api.AppendExecutionProviderCuda(sessionOptions, options);
  } finally {
    api.ReleaseCudaOptions(options);
  }
}

/** Returns provider options as in onnxruntime_c_api.h and the CUDA provider's documentation. */
export function cudaOptions({
  deviceId,
  memoryBytes,
  cudnn = false,
  graphs = false,
  stream,
}: Extract<OrtDevice, { provider: 'cuda' }>): Record<string, string> {
  return {
    device_id: String(deviceId),
    // The other strategy doubles the arena, and the KV cache is already large.
    arena_extend_strategy: 'kSameAsRequested',
    // float32 products keep float32 precision.
    use_tf32: '0',
    // Flash (1) and memory-efficient (2) attention. cuDNN's would build a plan per batch size, length and
    // thread.
    sdpa_kernel: '3',
    enable_cudnn: cudnn ? '1' : '0',
    ...(graphs && { enable_cuda_graph: '1' }),
    ...(stream && { has_user_compute_stream: '1', user_compute_stream: String(stream.handle) }),
    ...(memoryBytes !== null && { gpu_mem_limit: String(memoryBytes) }),
  };
}

/** Memory of a session's device, for bindings of this or another session on the same device. */
export class OrtDeviceMemory {
  /** OrtMemoryInfo. */
  readonly info: Pointer;
  readonly #api: OrtApi;
  readonly #allocator: Pointer;
  readonly #hasOffsets: boolean;
  readonly #allocated: Pointer[] = [];

  constructor(api: OrtApi, session: Pointer, device: OrtDevice) {
    this.#api = api;
    this.#hasOffsets = device.provider !== 'webgpu';
    const id = device.provider === 'cuda' ? device.deviceId : 0;
    this.info = api.CreateMemoryInfo(MEMORY_NAMES[device.provider], DEVICE_ALLOCATOR, id, DEFAULT_MEMORY);
    try {
      this.#allocator = api.CreateAllocator(session, this.info);
    } catch (error) {
      api.ReleaseMemoryInfo(this.info);
      throw error;
    }
  }

  /** Allocates memory that lives until `dispose`. */
  allocate(bytes: number): Pointer {
    const address = this.#api.AllocatorAlloc(this.#allocator, bytes);
    this.#allocated.push(address);
    return address;
  }

  /** Returns the address `offset` bytes into an allocation. WebGPU buffers are handles without offsets. */
  at(address: Pointer, offset: number): Pointer {
    if (offset === 0) return address;
    if (!this.#hasOffsets) throw new RangeError('this device binds whole buffers only');
    return address + BigInt(offset);
  }

  /** Call after all bindings and before the session are disposed. */
  dispose(): void {
    for (const address of this.#allocated.splice(0)) this.#api.AllocatorFree(this.#allocator, address);
    this.#api.ReleaseAllocator(this.#allocator);
    this.#api.ReleaseMemoryInfo(this.info);
  }
}
