/** Bytes of the files that a model in this browser needs, for the progress. A test compares them. */

export const MODEL_BYTES = {
  'config.json': 530,
  'continuo.json': 182,
  'tokenizer_config.json': 1_106,
  'tokenizer.json': 260_469,
  'model.onnx': 27_582,
  'model.onnx.data': 13_520_384,
} as const;

export const RUNTIME_BYTES = 14_239_897;
/** The build with WebGPU, which is loaded where there is a graphics card. */
export const GPU_RUNTIME_BYTES = 16_758_545;
