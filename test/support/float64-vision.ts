import { readTensors } from './float64-tensors.ts';

/**
 * The synthetic model's image encoder in float64: each square patch becomes a vector, followed by tanh and a
 * projection.
 */
export function float64Encoder(
  modelPath: string,
): (pixels: ArrayLike<number>, edge: number) => Float64Array[] {
  const tensors = readTensors(modelPath);
  const read = (name: string) => {
    const { dims, bytes } = tensors.get(name)!;
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    return {
      dims,
      values: Float64Array.from({ length: bytes.length / 4 }, (_, i) => view.getFloat32(4 * i, true)),
    };
  };
  const kernel = read('patches.weight');
  const bias = read('patches.bias');
  const projection = read('projection.weight');
  const [width = 0, channels = 0, patch = 0] = kernel.dims;
  const [, hidden = 0] = projection.dims;

  return (pixels, edge) => {
    const vectors: Float64Array[] = [];
    for (let top = 0; top < edge; top += patch) {
      for (let left = 0; left < edge; left += patch) {
        const vector = new Float64Array(hidden);
        for (let unit = 0; unit < width; unit++) {
          let sum = bias.values[unit]!;
          for (let channel = 0; channel < channels; channel++) {
            for (let y = 0; y < patch; y++) {
              for (let x = 0; x < patch; x++) {
                const weight = kernel.values[((unit * channels + channel) * patch + y) * patch + x]!;
                sum += weight * pixels[(channel * edge + top + y) * edge + left + x]!;
              }
            }
          }
          for (let i = 0; i < hidden; i++)
            vector[i]! += Math.tanh(sum) * projection.values[unit * hidden + i]!;
        }
        vectors.push(vector);
      }
    }
    return vectors;
  };
}
