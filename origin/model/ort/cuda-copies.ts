import koffi from 'koffi';
import { type CudaCall, type CudaEvent, type CudaStream, returned, type TimedEvent } from './cuda-stream.ts';

/** Memory on both sides of a copy. */
export interface Plane {
  readonly address: bigint;
  /** Bytes from the start of a line to that of the next. */
  readonly pitch: number;
  readonly where: 'host' | 'device';
}

/** CUDA_MEMCPY2D of cuda.h: offsets, and values of CUmemorytype. */
const COPY = {
  bytes: 128,
  from: { type: 16, host: 24, device: 32, pitch: 48 },
  to: { type: 72, host: 80, device: 88, pitch: 104 },
  width: 112,
  height: 120,
} as const;
const MEMORY_TYPES = { host: 1, device: 2 } as const;
/** Flag of cuMemHostRegister: kernels can address the memory. */
const DEVICE_MAP = 2;

/** Parameters of cuMemsetD8Async: address, value, bytes, stream. */
const CLEAR = ['void *', 'unsigned char', 'size_t', 'void *'];
/** Parameters of cuLaunchKernel: function, grid, thread block, shared memory, stream, arguments. */
const LAUNCH = ['void *', ...Array<string>(7).fill('unsigned int'), 'void *', 'void *', 'void *'];

/** Memory and kernels in the order in which the card uses them. */
export interface CudaWork {
  copy(from: Plane, to: Plane, width: number, height: number): void;
  /** Fills device memory with zeros. */
  clear(address: bigint, bytes: number): void;
  launch(kernel: Kernel, grid: readonly [number, number], values: readonly bigint[]): void;
}

/** Page-locked memory. Its bytes may be used until `free`, or until its owner is disposed. */
export interface HostMemory {
  readonly address: bigint;
  readonly bytes: Uint8Array;
  free(): void;
}

interface Kernel {
  readonly handle: bigint;
  /** Of a thread block. */
  readonly threads: number;
}

/**
 * Copies lines of bytes and launches kernels on a stream. Host memory must be page-locked: `hostMemory`
 * returns it.
 */
export class CudaCopies {
  readonly #call: CudaCall;
  readonly #stream: CudaStream;
  readonly #ownsStream: boolean;
  readonly #locked: bigint[] = [];
  readonly #modules: bigint[] = [];
  readonly #allocated = new Set<bigint>();

  /** @param ownsStream whether to dispose the stream with the copies */
  constructor(call: CudaCall, stream: CudaStream, ownsStream = true) {
    this.#call = call;
    this.#stream = stream;
    this.#ownsStream = ownsStream;
  }

  hostMemory(bytes: number): HostMemory {
    const types = ['void *', 'size_t', 'unsigned int'];
    const address = this.#stream.inContext(() =>
      returned((cell) => this.#call('cuMemHostAlloc', types, cell, bytes, 0)),
    );
    this.#allocated.add(address);
    const free = () => this.#stream.inContext(() => this.#freeHost(address));
    return { address, bytes: new Uint8Array(koffi.view(address, bytes)), free };
  }

  /** Page-locks memory that exists, until `dispose`. Returns its address here and that for kernels. */
  pageLock(memory: ArrayBufferView): { readonly address: bigint; readonly forKernels: bigint } {
    const address = koffi.address(memory);
    const types = ['void *', 'size_t', 'unsigned int'];
    return this.#stream.inContext(() => {
      this.#call('cuMemHostRegister_v2', types, address, memory.byteLength, DEVICE_MAP);
      this.#locked.push(address);
      const ofHost = ['void *', 'void *', 'unsigned int'];
      const forKernels = returned((cell) =>
        this.#call('cuMemHostGetDevicePointer_v2', ofHost, cell, address, 0),
      );
      return { address, forKernels };
    });
  }

  /** Compiles a module for the card, and returns its kernels by name. */
  load<T extends string>(ptx: string, threads: Readonly<Record<T, number>>): Readonly<Record<T, Kernel>> {
    return this.#stream.inContext(() => {
      const text = Buffer.from(`${ptx}\0`);
      const module = returned((cell) => this.#call('cuModuleLoadData', ['void *', 'void *'], cell, text));
      this.#modules.push(module);
      const kernels = Object.entries<number>(threads).map(([name, count]) => {
        const types = ['void *', 'void *', 'str'];
        const handle = returned((cell) => this.#call('cuModuleGetFunction', types, cell, module, name));
        return [name, { handle, threads: count }];
      });
      return Object.fromEntries(kernels) as Record<T, Kernel>;
    });
  }

  /**
   * Begins work and waits for it, but not for other work of the card. What it reads must be there: a run of
   * ONNX Runtime has ended on the card when its call returns.
   */
  perform(begin: (work: CudaWork) => void): void {
    this.#stream.inContext(() => {
      try {
        begin(this.#work);
      } finally {
        this.#stream.wait();
      }
    });
  }

  /** Begins work without waiting for it. Its host memory must stay as it is until the work is done. */
  begin(begin: (work: CudaWork) => void): void {
    this.#stream.inContext(() => begin(this.#work));
  }

  /** Waits for all work that was begun. */
  wait(): void {
    this.#stream.inContext(() => this.#stream.wait());
  }

  newEvent(): CudaEvent {
    return this.#stream.newEvent();
  }

  newTimedEvent(): TimedEvent {
    return this.#stream.newTimedEvent();
  }

  /** Fills page-locked memory. */
  toHost(device: bigint, memory: ArrayBufferView): void {
    const bytes = memory.byteLength;
    const host = { where: 'host', address: koffi.address(memory), pitch: bytes } as const;
    this.perform((work) => work.copy({ where: 'device', address: device, pitch: bytes }, host, bytes, 1));
  }

  dispose(): void {
    this.#stream.inContext(() => {
      for (const address of this.#allocated) this.#freeHost(address);
      for (const address of this.#locked.splice(0)) this.#call('cuMemHostUnregister', ['void *'], address);
      for (const module of this.#modules.splice(0)) this.#call('cuModuleUnload', ['void *'], module);
    });
    if (this.#ownsStream) this.#stream.dispose();
  }

  readonly #copy: CudaWork['copy'] = (from, to, width, height) => {
    const copy = Buffer.alloc(COPY.bytes);
    describe(copy, COPY.from, from);
    describe(copy, COPY.to, to);
    copy.writeBigUInt64LE(BigInt(width), COPY.width);
    copy.writeBigUInt64LE(BigInt(height), COPY.height);
    this.#call('cuMemcpy2DAsync_v2', ['void *', 'void *'], copy, this.#stream.handle);
  };

  readonly #clear: CudaWork['clear'] = (address, bytes) =>
    this.#call('cuMemsetD8Async', CLEAR, address, 0, bytes, this.#stream.handle);

  readonly #launch: CudaWork['launch'] = ({ handle, threads }, [columns, rows], values) => {
    // The addresses of the arguments, then the arguments: one array, which the call keeps alive.
    const cells = new BigUint64Array([...values, ...values]);
    const first = koffi.address(cells) + BigInt(8 * values.length);
    for (const index of values.keys()) cells[index] = first + BigInt(8 * index);
    const sizes = [columns, rows, 1, threads, 1, 1, 0];
    this.#call('cuLaunchKernel', LAUNCH, handle, ...sizes, this.#stream.handle, cells, null);
  };

  get #work(): CudaWork {
    return { copy: this.#copy, clear: this.#clear, launch: this.#launch };
  }

  #freeHost(address: bigint): void {
    if (this.#allocated.delete(address)) this.#call('cuMemFreeHost', ['void *'], address);
  }
}

function describe(copy: Buffer, at: (typeof COPY)['from' | 'to'], { address, pitch, where }: Plane): void {
  copy.writeUInt32LE(MEMORY_TYPES[where], at.type);
  copy.writeBigUInt64LE(address, at[where]);
  copy.writeBigUInt64LE(BigInt(pitch), at.pitch);
}
