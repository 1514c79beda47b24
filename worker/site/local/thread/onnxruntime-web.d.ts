declare module 'onnxruntime-web/*.mjs' {
  /** Creates a module of its own memory. */
  const create: (options: {
    readonly numThreads: number;
    readonly wasmBinary: Uint8Array;
  }) => Promise<unknown>;
  // biome-ignore lint/style/noDefaultExport: the package has it.
  export default create;
}
