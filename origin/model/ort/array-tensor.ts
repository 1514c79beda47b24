import { ElementType } from '../onnx/onnx-graph.ts';
import type { BoundTensor } from './ort-binding.ts';
import type { OrtApi } from './ort-capi.ts';

export type Elements = Float32Array<ArrayBuffer> | BigInt64Array<ArrayBuffer>;

/** Describes a typed array as a tensor in CPU memory. */
export const arrayTensor = (api: OrtApi, array: Elements, dimensions: readonly number[]): BoundTensor => ({
  address: api.addressOf(array),
  elementType: array instanceof Float32Array ? ElementType.float32 : ElementType.int64,
  elementBytes: array.BYTES_PER_ELEMENT,
  dimensions,
});
