import { ElementType } from '../onnx/onnx-graph.ts';
import type { BoundTensor } from './ort-binding.ts';
import type { OrtApi } from './ort-capi.ts';

export type Elements = Float32Array<ArrayBuffer> | BigInt64Array<ArrayBuffer>;

/** Numbers of the CPU's memory as a tensor. */
export const arrayTensor = (api: OrtApi, array: Elements, dimensions: readonly number[]): BoundTensor => ({
  address: api.addressOf(array),
  elementType: array instanceof Float32Array ? ElementType.float32 : ElementType.int64,
  elementBytes: array.BYTES_PER_ELEMENT,
  dimensions,
});
