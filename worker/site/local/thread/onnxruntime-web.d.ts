declare module 'onnxruntime-web/ort-wasm-simd-threaded.mjs' {
  /** Creates a module of its own memory. */
  const create: (options: {
    readonly numThreads: number;
    readonly wasmBinary: Uint8Array;
  }) => Promise<unknown>;
  // biome-ignore lint/style/noDefaultExport: the package has it.
  export default create;
}

declare module 'onnxruntime-web/ort-wasm-simd-threaded.jspi.mjs' {
  /** Creates a module of its own memory. */
  const create: (options: {
    readonly numThreads: number;
    readonly wasmBinary: Uint8Array;
  }) => Promise<unknown>;
  // biome-ignore lint/style/noDefaultExport: the package has it.
  export default create;
}
