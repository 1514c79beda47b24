import { GraphField, readNode } from '../onnx/onnx-graph.ts';
import { fieldsOf } from '../onnx/onnx-patch.ts';
import { encodeMessage, readString, type WireField, wireFields } from '../onnx/wire-format.ts';

const ATTRIBUTE = 'sliding_window_cache';

/**
 * Removes `sliding_window_cache` from every GroupQueryAttention. The operator then reads a cache of all
 * positions and still applies its window. With the attribute it moves positions with the window, so a slot
 * could not be truncated or copied, and it refuses caches shorter than the window. WebGPU does not implement
 * the attribute.
 */
export function disableWindowedCache(fields: readonly WireField[]): WireField[] {
  return fields.flatMap((field) => {
    if (field.field !== GraphField.node) return [field];
    const { operator, integers } = readNode(field);
    if (operator !== 'GroupQueryAttention' || !integers.has(ATTRIBUTE)) return [field];
    const kept = [...wireFields(field.bytes)].filter((part) => !isAttribute(part)).map(({ run }) => run);
    return fieldsOf([encodeMessage(GraphField.node, kept)]);
  });
}

const isAttribute = ({ field, bytes }: WireField): boolean =>
  field === 5 && [...wireFields(bytes)].some((part) => part.field === 1 && readString(part) === ATTRIBUTE);
