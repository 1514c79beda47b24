import {
  encodeAttribute,
  encodeInitializer,
  encodeIntegerAttribute,
  encodeRawData,
  encodeTensor,
} from './onnx-encode.ts';
import { ElementType, GraphField, readNode, readTensor } from './onnx-graph.ts';
import { fieldsOf, graphFields, PREFIX, withGraph } from './onnx-patch.ts';
import { encodeMessage, encodeString, type WireField, wireFields } from './wire-format.ts';

/** Keys or values of a layer: the names of its inputs and outputs, and what a level is worth by channel. */
interface KvScales {
  readonly names: readonly string[];
  readonly heads: number;
  /** [heads · head size] */
  readonly scales: Float32Array;
}

/** Inputs of GroupQueryAttention. */
const PAST = { key: 3, value: 4 } as const;
const KEY_SCALE = 12;
const NODE_INPUT = 1;

/**
 * Returns a decoder whose KV cache is int8: value = level · scale. Keys and values are rounded to levels when
 * they are written; queries, products and results keep their type.
 * @throws Error that completes "model.onnx …" if an attention reads a cache without scales
 */
export function withQuantizedKv(model: Uint8Array, kv: readonly KvScales[]): Uint8Array {
  const scaled = new Map(
    kv.flatMap((tensor, index) => tensor.names.map((name) => [name, { tensor, index }] as const)),
  );
  const scaleOf = (name: string | undefined): string => {
    const scales = scaled.get(name ?? '');
    if (scales === undefined) throw new Error(`has an attention that reads ${name}, which has no scales`);
    return `${PREFIX}/kv-scales/${scales.index}`;
  };
  const changed = graphFields(model).flatMap((field): WireField[] => {
    if (field.field === GraphField.input || field.field === GraphField.output) {
      const tensor = readTensor(field);
      if (!scaled.has(tensor.name)) return [field];
      return fieldsOf([encodeTensor(field.field, { ...tensor, elementType: ElementType.int8 })]);
    }
    if (field.field !== GraphField.node) return [field];
    const { operator, inputs } = readNode(field);
    if (operator !== 'GroupQueryAttention') return [field];
    return fieldsOf([quantizedAttention(field, inputs, scaleOf)]);
  });
  const constants = kv.map(({ heads, scales }, index) =>
    encodeInitializer(
      {
        name: `${PREFIX}/kv-scales/${index}`,
        elementType: ElementType.float32,
        dimensions: [1, heads, 1, scales.length / heads],
      },
      [encodeRawData([new Uint8Array(scales.buffer, scales.byteOffset, scales.byteLength)])],
    ),
  );
  return withGraph(model, [...changed, ...fieldsOf(constants)]);
}

function quantizedAttention(
  field: WireField,
  inputs: readonly string[],
  scaleOf: (name: string | undefined) => string,
): Uint8Array {
  const all = Array.from({ length: KEY_SCALE }, (_, index) => inputs[index] ?? '');
  all.push(scaleOf(inputs[PAST.key]), scaleOf(inputs[PAST.value]));
  const others = [...wireFields(field.bytes)].filter((part) => part.field !== NODE_INPUT);
  const mode = encodeString(4, 'PER_CHANNEL');
  return encodeMessage(GraphField.node, [
    ...all.map((name) => encodeString(NODE_INPUT, name)),
    ...others.map(({ run }) => run),
    encodeAttribute('k_quant_type', 'string', mode),
    encodeAttribute('v_quant_type', 'string', mode),
    encodeIntegerAttribute('kv_cache_bit_width', 8),
  ]);
}
