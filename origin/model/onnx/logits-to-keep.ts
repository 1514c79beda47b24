import { encodeIntegers } from './onnx-encode.ts';
import { ElementType, GraphField, readTensor } from './onnx-graph.ts';
import { fieldsOf } from './onnx-patch.ts';
import type { WireField } from './wire-format.ts';

/** int64 [] or [1]: how many of a run's last positions get logits; 0 = all. transformers.js feeds it if a graph has it. */
export const LOGITS_TO_KEEP = 'num_logits_to_keep';

/** Replaces the input `num_logits_to_keep` by the constant 0, because `logits_index` selects the positions. */
export function keepAllLogits(fields: readonly WireField[]): WireField[] {
  return fields.flatMap((field) => {
    if (field.field !== GraphField.input) return [field];
    const { name, dimensions } = readTensor(field);
    if (name !== LOGITS_TO_KEEP) return [field];
    const shape = dimensions.map(() => 1);
    return fieldsOf([encodeIntegers(name, ElementType.int64, shape, [0])]);
  });
}
