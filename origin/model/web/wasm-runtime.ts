import { RuntimeFault } from '../model-runner.ts';
import type { HostMemory, Pointer } from '../ort/bound-tensors.ts';

/**
 * The part of onnxruntime-web's WebAssembly module that the runner needs. Its JavaScript interface copies the
 * KV cache into the module and out of it at each run; this one keeps it there, as the native one does.
 */
export interface OrtWasm {
  /** All memory; a new view after the module's memory has grown. */
  readonly HEAPU8: Uint8Array;
  _malloc(bytes: number): number;
  _free(address: number): void;
  setValue(address: number, value: number, type: 'i32' | '*'): void;
  getValue(address: number, type: '*'): number;
  UTF8ToString(address: number): string;
  stringToUTF8(text: string, address: number, bytes: number): void;
  lengthBytesUTF8(text: string): number;
  stackSave(): number;
  stackAlloc(bytes: number): number;
  stackRestore(stack: number): void;
  mountExternalData(file: string, content: Uint8Array): void;
  unmountExternalData(): void;
  _OrtInit(threads: number, logLevel: number): number;
  _OrtGetLastError(code: number, message: number): number;
  _OrtCreateSessionOptions(
    optimization: number,
    arena: boolean,
    memoryPattern: boolean,
    executionMode: number,
    profiling: boolean,
    profile: number,
    logId: number,
    logLevel: number,
    verbosity: number,
    optimizedModel: number,
  ): number;
  _OrtReleaseSessionOptions(options: number): number;
  _OrtCreateSession(model: number, bytes: number, options: number): number | Promise<number>;
  _OrtReleaseSession(session: number): number;
  _OrtCreateTensor(
    elementType: number,
    data: number,
    bytes: number,
    dimensions: number,
    rank: number,
    place: number,
  ): number;
  _OrtReleaseTensor(tensor: number): number;
  _OrtRun(
    session: number,
    inputNames: number,
    inputs: number,
    inputCount: number,
    outputNames: number,
    outputCount: number,
    outputs: number,
    options: number,
  ): number | Promise<number>;
}

const LOG_FATAL = 4;
const POINTER_BYTES = 4;

/** The module's memory and errors. One for each module. */
export class WasmRuntime<Module extends OrtWasm = OrtWasm> implements HostMemory {
  readonly module: Module;
  /** Views of the module's memory; it never moves, because it is shared. */
  readonly #heaps = new WeakSet<ArrayBufferLike>();

  constructor(module: Module) {
    this.module = module;
    if (module._OrtInit(1, LOG_FATAL) !== 0) this.fail();
  }

  allocate(bytes: number): Uint8Array<ArrayBuffer> {
    const address = this.take(bytes);
    const { buffer } = this.module.HEAPU8;
    this.#heaps.add(buffer);
    return new Uint8Array(buffer as ArrayBuffer, address, bytes).fill(0);
  }

  /** Returns the place in the module's memory; 0 for other memory. */
  addressOf(memory: ArrayBuffer | ArrayBufferView): Pointer {
    return ArrayBuffer.isView(memory) && this.#heaps.has(memory.buffer) ? BigInt(memory.byteOffset) : 0n;
  }

  releasePages(): void {}

  /** @throws RuntimeFault if there is no memory */
  take(bytes: number): number {
    const address = this.module._malloc(Math.max(1, bytes));
    if (address === 0)
      throw new RuntimeFault(`no memory for ${bytes} bytes`, 'ORT_OUT_OF_MEMORY', 'out-of-memory');
    return address;
  }

  /** Returns the address of a text that ends with a zero. */
  text(text: string): number {
    const bytes = this.module.lengthBytesUTF8(text) + 1;
    const address = this.take(bytes);
    this.module.stringToUTF8(text, address, bytes);
    return address;
  }

  /** Returns the address of a list of addresses. */
  list(addresses: readonly number[]): number {
    const list = this.take(POINTER_BYTES * addresses.length);
    for (const [index, address] of addresses.entries())
      this.module.setValue(list + POINTER_BYTES * index, address, '*');
    return list;
  }

  /** @throws RuntimeFault with the message of the call that failed */
  fail(): never {
    const { module } = this;
    const stack = module.stackSave();
    const place = module.stackAlloc(2 * POINTER_BYTES);
    module._OrtGetLastError(place, place + POINTER_BYTES);
    const message = module.UTF8ToString(module.getValue(place + POINTER_BYTES, '*'));
    module.stackRestore(stack);
    throw new RuntimeFault(message, 'ORT_FAIL', /alloc|memory/i.test(message) ? 'out-of-memory' : 'other');
  }
}
