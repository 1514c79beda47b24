import type { BoundTensor, Pointer, RunBinding } from './bound-tensors.ts';
import type { OrtApi } from './ort-capi.ts';

/** Bound inputs and outputs of one kind of run. Between runs only the content of the memory changes. */
export class OrtBinding implements RunBinding {
  readonly handle: Pointer;
  readonly #api: OrtApi;
  readonly #memory: Pointer;
  /** By name. The garbage collector does not see addresses. */
  readonly #owners = new Map<string, ArrayBufferView>();

  constructor(api: OrtApi, session: Pointer, memory: Pointer) {
    this.#api = api;
    this.#memory = memory;
    this.handle = api.CreateIoBinding(session);
  }

  /**
   * Binds or rebinds an input. For a device, the data are copied now, so later changes of CPU memory have no
   * effect (`OrtSession.copiesInputs`).
   */
  input(name: string, tensor: BoundTensor): void {
    this.#withValue(name, tensor, (value) => this.#api.BindInput(this.handle, name, value));
  }

  output(name: string, tensor: BoundTensor): void {
    this.#withValue(name, tensor, (value) => this.#api.BindOutput(this.handle, name, value));
  }

  /** Binds `input` and `outputs` to the same memory. */
  inPlace(input: string, outputs: readonly string[], tensor: BoundTensor): void {
    this.#withValue(input, tensor, (value) => {
      this.#api.BindInput(this.handle, input, value);
      for (const output of outputs) this.#api.BindOutput(this.handle, output, value);
    });
  }

  dispose(): void {
    this.#api.ReleaseIoBinding(this.handle);
    this.#owners.clear();
  }

  [Symbol.dispose](): void {
    this.dispose();
  }

  /** The binding holds its own reference to the tensor, so the value can be released at once. */
  #withValue(name: string, tensor: BoundTensor, bind: (value: Pointer) => void): void {
    const elements = tensor.dimensions.reduce((product, size) => product * size, 1);
    const value = this.#api.CreateTensorWithDataAsOrtValue(
      'memory' in tensor ? tensor.memory : this.#memory,
      tensor.address,
      elements * tensor.elementBytes,
      BigInt64Array.from(tensor.dimensions, BigInt),
      tensor.dimensions.length,
      tensor.elementType,
    );
    try {
      bind(value);
      if ('owner' in tensor) this.#owners.set(name, tensor.owner);
    } finally {
      this.#api.ReleaseValue(value);
    }
  }
}
