import { ElementType, GraphField, readTensor } from './onnx-graph.ts';
import { fieldsOf } from './onnx-patch.ts';
import { encodeInteger, encodeMessage, encodeString, type WireField } from './wire-format.ts';

/** int64 [] or [1]: how many of a run's last positions get logits; 0 = all. transformers.js feeds it if a graph has it. */
export const LOGITS_TO_KEEP = 'num_logits_to_keep';

/** Replaces the input `num_logits_to_keep` by the constant 0, because `logits_index` selects the positions. */
export function keepAllLogits(fields: readonly WireField[]): WireField[] {
  return fields.flatMap((field) => {
    if (field.field !== GraphField.input) return [field];
    const { name, dimensions } = readTensor(field);
    return name === LOGITS_TO_KEEP ? fieldsOf([zero(name, dimensions.length)]) : [field];
  });
}

/** Encodes an initializer (TensorProto) of one int64, 0. */
const zero = (name: string, rank: number): Uint8Array =>
  encodeMessage(GraphField.initializer, [
    ...Array.from({ length: rank }, () => encodeInteger(1, 1)),
    encodeInteger(2, ElementType.int64),
    encodeString(8, name),
    encodeMessage(9, [new Uint8Array(8)]),
  ]);
