import { RunTerminated } from '../model-runner.ts';
import { type BoundTensor, boundTo, type RunBinding, type RunSession } from '../ort/bound-tensors.ts';
import type { WasmRuntime } from './wasm-runtime.ts';

const ALL_OPTIMIZATIONS = 99;
const LOG_FATAL = 4;
const ON_CPU = 1;

/** Memory outside of the module, copied before each run or after it. */
interface Copied {
  readonly owner: ArrayBufferView;
  readonly address: number;
  readonly bytes: number;
}

/** A model in onnxruntime-web's WebAssembly, on the calling thread. */
export class WasmSession implements RunSession {
  readonly api: WasmRuntime;
  readonly copiesInputs = false;
  /** The module's own. */
  readonly handle: number;

  private constructor(api: WasmRuntime, handle: number) {
    this.api = api;
    this.handle = handle;
  }

  /**
   * @param files external weights by name; the model's files name them
   * @param prepare changes the session's options
   * @throws RuntimeFault with ONNX Runtime's message if it refuses the model
   */
  static async open(
    api: WasmRuntime,
    model: Uint8Array,
    files: ReadonlyMap<string, Uint8Array>,
    prepare: (options: number) => Promise<void> = async () => {},
  ): Promise<WasmSession> {
    const { module } = api;
    for (const [name, content] of files) module.mountExternalData(name, content);
    const bytes = api.take(model.length);
    module.HEAPU8.set(model, bytes);
    // Without memory patterns, which are cached per combination of input shapes.
    const options = module._OrtCreateSessionOptions(
      ALL_OPTIMIZATIONS,
      true,
      false,
      0,
      false,
      0,
      0,
      LOG_FATAL,
      0,
      0,
    );
    try {
      await prepare(options);
      const session = await module._OrtCreateSession(bytes, model.length, options);
      return session === 0 ? api.fail() : new WasmSession(api, session);
    } finally {
      module._OrtReleaseSessionOptions(options);
      module._free(bytes);
      module.unmountExternalData();
    }
  }

  bound(bind: (binding: WasmBinding) => void): WasmBinding {
    return boundTo(new WasmBinding(this.api), bind);
  }

  run(binding: WasmBinding): void {
    if (binding.run(this.handle) !== undefined) throw new Error('the run must be awaited');
  }

  /** Runs on the calling thread; messages that arrived meanwhile are handled before the next step. */
  async runAsync(binding: WasmBinding, signal: AbortSignal): Promise<void> {
    if (signal.aborted) throw new RunTerminated('the run was cancelled before it started');
    await binding.run(this.handle);
  }

  dispose(): void {
    this.api.module._OrtReleaseSession(this.handle);
  }
}

/** Tensors by name, and what is copied because it lies outside of the module. */
class WasmBinding implements RunBinding {
  readonly #api: WasmRuntime;
  readonly #inputs = new Map<string, number>();
  readonly #outputs = new Map<string, number>();
  readonly #before: Copied[] = [];
  readonly #after: Copied[] = [];
  /** Memory to free: of copies, names and lists. */
  readonly #taken: number[] = [];
  /** Lists of names and tensors, made at the first run. */
  #lists: readonly [number, number, number, number] | null = null;

  constructor(api: WasmRuntime) {
    this.#api = api;
  }

  input(name: string, tensor: BoundTensor): void {
    this.#inputs.set(name, this.#tensor(tensor, this.#before));
  }

  output(name: string, tensor: BoundTensor): void {
    this.#outputs.set(name, this.#tensor(tensor, this.#after));
  }

  inPlace(input: string, outputs: readonly string[], tensor: BoundTensor): void {
    const made = this.#tensor(tensor, null);
    this.#inputs.set(input, made);
    for (const output of outputs) this.#outputs.set(output, made);
  }

  /** Returns a promise if the run suspends WebAssembly. */
  run(session: number): void | Promise<void> {
    const { module } = this.#api;
    this.#lists ??= [...this.#listsOf(this.#inputs), ...this.#listsOf(this.#outputs)];
    for (const { owner, address, bytes } of this.#before)
      module.HEAPU8.set(new Uint8Array(owner.buffer, owner.byteOffset, bytes), address);
    const [inputNames, inputs, outputNames, outputs] = this.#lists;
    const stack = module.stackSave();
    const end = (status: number) => {
      module.stackRestore(stack);
      this.#end(status);
    };
    const status = module._OrtRun(
      session,
      inputNames,
      inputs,
      this.#inputs.size,
      outputNames,
      this.#outputs.size,
      outputs,
      0,
    );
    return typeof status === 'number' ? end(status) : status.then(end);
  }

  #end(status: number): void {
    if (status !== 0) this.#api.fail();
    const { HEAPU8 } = this.#api.module;
    for (const { owner, address, bytes } of this.#after)
      new Uint8Array(owner.buffer, owner.byteOffset, bytes).set(HEAPU8.subarray(address, address + bytes));
  }

  dispose(): void {
    const { module } = this.#api;
    for (const tensor of new Set([...this.#inputs.values(), ...this.#outputs.values()]))
      module._OrtReleaseTensor(tensor);
    for (const address of this.#taken.splice(0)) module._free(address);
    this.#inputs.clear();
    this.#outputs.clear();
  }

  [Symbol.dispose](): void {
    this.dispose();
  }

  #listsOf(tensors: ReadonlyMap<string, number>): [names: number, tensors: number] {
    const names = Array.from(tensors.keys(), (name) => this.#kept(this.#api.text(name)));
    return [this.#kept(this.#api.list(names)), this.#kept(this.#api.list([...tensors.values()]))];
  }

  /** @param copies gets the tensor if its memory lies outside of the module; null = it must not */
  #tensor(tensor: BoundTensor, copies: Copied[] | null): number {
    const { module } = this.#api;
    const { dimensions, elementType, elementBytes } = tensor;
    const bytes = dimensions.reduce((product, size) => product * size, elementBytes);
    const place = 'memory' in tensor ? Number(tensor.memory) : ON_CPU;
    let address = Number(tensor.address);
    if (address === 0) {
      if (copies === null || !('owner' in tensor)) throw new Error('the tensor lies outside of the module');
      address = this.#kept(this.#api.take(bytes));
      copies.push({ owner: tensor.owner, address, bytes });
    }
    const stack = module.stackSave();
    const list = module.stackAlloc(4 * Math.max(1, dimensions.length));
    for (const [index, size] of dimensions.entries()) module.setValue(list + 4 * index, size, 'i32');
    const made = module._OrtCreateTensor(elementType, address, bytes, list, dimensions.length, place);
    module.stackRestore(stack);
    return made === 0 ? this.#api.fail() : made;
  }

  #kept(address: number): number {
    this.#taken.push(address);
    return address;
  }
}
