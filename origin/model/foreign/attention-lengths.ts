import { LAST_POSITIONS, TOTAL_LENGTH } from '../config/decoder-names.ts';
import { encodeIntegers, encodeNode, encodeTensor } from '../onnx/onnx-encode.ts';
import { ElementType, GraphField, readNode, readTensor, withBranches } from '../onnx/onnx-graph.ts';
import { fieldsOf } from '../onnx/onnx-patch.ts';
import { encodeMessage, encodeString, type WireField, wireFields } from '../onnx/wire-format.ts';

const ATTENTION = 'GroupQueryAttention';
/** Index of seqlens_k among its inputs; total_sequence_length is the next one. */
const LENGTHS_AT = 5;

/**
 * Makes the two lengths that GroupQueryAttention reads inputs of the graph, and removes the nodes that
 * computed them from the attention mask. On CUDA, the sum of a mask of integers needs cuDNN, which nothing
 * else in a decoder does. If other nodes read the mask, it is computed from the lengths, so that no run needs
 * a mask.
 */
export function feedLengths(fields: readonly WireField[], attentionMask: string): WireField[] {
  const fed = fields.flatMap((field) => {
    if (field.field !== GraphField.node) return [field];
    const { operator, inputs } = readNode(field);
    if (operator !== ATTENTION) return [field];
    const lengths = [LAST_POSITIONS, TOTAL_LENGTH];
    return fieldsOf([withInputs(field, inputs.toSpliced(LENGTHS_AT, lengths.length, ...lengths))]);
  });
  const { kept, read } = withoutUnread(fed);
  const isMask = (field: WireField) =>
    field.field === GraphField.input && readTensor(field).name === attentionMask;
  return [
    // Before all nodes that read it.
    ...fieldsOf(read.has(attentionMask) ? encodeMask(attentionMask) : []),
    ...kept.filter((field) => !isMask(field)),
    ...fieldsOf([
      encodeTensor(GraphField.input, int32(LAST_POSITIONS, ['batch_size'])),
      encodeTensor(GraphField.input, int32(TOTAL_LENGTH, [])),
    ]),
  ];
}

const int32 = (name: string, dimensions: readonly string[]) => ({
  name,
  elementType: ElementType.int32,
  dimensions,
});

/**
 * Removes the nodes whose results no other node reads and the graph does not return. Nodes are in topological
 * order, as ONNX requires.
 */
function withoutUnread(fields: readonly WireField[]) {
  const read = new Set<string>();
  for (const field of fields) if (field.field === GraphField.output) read.add(readTensor(field).name);
  const kept = fields.toReversed().filter((field) => {
    if (field.field !== GraphField.node) return true;
    const { inputs, outputs, branches } = readNode(field);
    if (!outputs.some((name) => read.has(name))) return false;
    for (const name of inputs) read.add(name);
    // Branches read tensors of the graph by name.
    for (const { nodes } of branches.flatMap((branch) => [...withBranches(branch)])) {
      for (const node of nodes) for (const name of node.inputs) read.add(name);
    }
    return true;
  });
  return { kept: kept.toReversed(), read };
}

/** Encodes the mask, int64 [batch, total]: 1 up to the last position of each row, then 0. */
function encodeMask(name: string): Uint8Array[] {
  const part = (suffix: string) => `continuo/mask/${suffix}`;
  return [
    encodeIntegers(part('zero'), ElementType.int32, [], [0]),
    encodeIntegers(part('one'), ElementType.int32, [], [1]),
    encodeIntegers(part('column'), ElementType.int64, [2], [-1, 1]),
    encodeNode('Range', [part('zero'), TOTAL_LENGTH, part('one')], part('positions')),
    encodeNode('Reshape', [LAST_POSITIONS, part('column')], part('last')),
    encodeNode('LessOrEqual', [part('positions'), part('last')], part('held')),
    encodeNode('Cast', [part('held')], name, { to: ElementType.int64 }),
  ];
}

/** Encodes a node with other inputs. */
function withInputs(node: WireField, inputs: readonly string[]): Uint8Array {
  const kept = [...wireFields(node.bytes)].filter((part) => part.field !== 1).map(({ run }) => run);
  return encodeMessage(GraphField.node, [...inputs.map((name) => encodeString(1, name)), ...kept]);
}
