import type { OrtApi, Pointer } from './ort-capi.ts';

/** Memory seen as a tensor. Whoever binds it keeps the memory alive and in place until the last run. */
export interface BoundTensor {
  readonly address: Pointer;
  readonly elementType: number;
  readonly elementBytes: number;
  readonly dimensions: readonly number[];
  /** OrtMemoryInfo of a device's memory; the CPU's when absent. */
  readonly memory?: Pointer;
}

/** Inputs and outputs of one kind of run, kept between runs: only the memory's content changes. */
export class OrtBinding {
  readonly handle: Pointer;
  readonly #api: OrtApi;
  readonly #memory: Pointer;

  constructor(api: OrtApi, session: Pointer, memory: Pointer) {
    this.#api = api;
    this.#memory = memory;
    this.handle = api.CreateIoBinding(session);
  }

  /**
   * Binds or rebinds; the former tensor is let go. What a device computes with is copied to it now, so that later changes
   * of the CPU's memory are not seen (`OrtSession.copiesInputs`).
   */
  input(name: string, tensor: BoundTensor): void {
    this.#withValue(tensor, (value) => this.#api.BindInput(this.handle, name, value));
  }

  output(name: string, tensor: BoundTensor): void {
    this.#withValue(tensor, (value) => this.#api.BindOutput(this.handle, name, value));
  }

  /** Reads `input` from and writes `output` to the same memory. */
  inPlace(input: string, output: string, tensor: BoundTensor): void {
    this.#withValue(tensor, (value) => {
      this.#api.BindInput(this.handle, input, value);
      this.#api.BindOutput(this.handle, output, value);
    });
  }

  dispose(): void {
    this.#api.ReleaseIoBinding(this.handle);
  }

  /** The binding holds its own reference to the tensor, so that the value can be released at once. */
  #withValue(tensor: BoundTensor, bind: (value: Pointer) => void): void {
    const elements = tensor.dimensions.reduce((product, size) => product * size, 1);
    const value = this.#api.CreateTensorWithDataAsOrtValue(
      tensor.memory ?? this.#memory,
      tensor.address,
      elements * tensor.elementBytes,
      BigInt64Array.from(tensor.dimensions, BigInt),
      tensor.dimensions.length,
      tensor.elementType,
    );
    try {
      bind(value);
    } finally {
      this.#api.ReleaseValue(value);
    }
  }
}
