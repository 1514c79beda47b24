/** As much of WebAssembly's JavaScript interface as is used here; the compiler's libraries have it for browsers alone. */
interface WebAssemblyApi {
  readonly Module: new (bytes: Uint8Array<ArrayBuffer>) => object;
  readonly Instance: new (
    module: object,
    imports: Readonly<Record<string, Readonly<Record<string, object>>>>,
  ) => { readonly exports: object };
  /** Sizes in pages of 64 KiB. */
  readonly Memory: new (size: {
    readonly initial: number;
    readonly maximum: number;
    readonly shared: boolean;
  }) => WasmMemory;
}

/** Can be sent to other threads, as modules can, if it is shared. */
export interface WasmMemory {
  readonly buffer: ArrayBuffer | SharedArrayBuffer;
}

export const { Module, Instance, Memory } = (
  globalThis as unknown as { readonly WebAssembly: WebAssemblyApi }
).WebAssembly;
