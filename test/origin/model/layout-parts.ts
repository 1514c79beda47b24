import type { SyntheticLayout } from '../../support/synthetic/synthetic-model.ts';

/** What the exporters do differently, to put layouts together from. */

export const community = (name: string): Partial<SyntheticLayout> => ({
  file: `onnx/${name}.onnx`,
  dataFile: `${name}.onnx_data`,
});
export const builder = { configuration: 'genai' } as const;
export const plain = { attention: 'concatenated' } as const;
export const merged = { attention: 'merged' } as const;
export const int8 = { quantization: 'int8-dynamic' } as const;
