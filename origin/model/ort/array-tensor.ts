import { ElementType } from '../onnx/onnx-graph.ts';
import type { BoundTensor } from './ort-binding.ts';
import type { OrtApi } from './ort-capi.ts';

export type Elements = Float32Array<ArrayBuffer> | BigInt64Array<ArrayBuffer> | Int32Array<ArrayBuffer>;

const elementTypeOf = (array: Elements): number => {
  if (array instanceof Float32Array) return ElementType.float32;
  return array instanceof Int32Array ? ElementType.int32 : ElementType.int64;
};

/** Describes a typed array as a tensor in CPU memory. */
export const arrayTensor = (api: OrtApi, array: Elements, dimensions: readonly number[]): BoundTensor => ({
  address: api.addressOf(array),
  elementType: elementTypeOf(array),
  elementBytes: array.BYTES_PER_ELEMENT,
  dimensions,
});
