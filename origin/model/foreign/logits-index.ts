import { LOGITS_INDEX, LOGITS_TO_KEEP } from '../config/decoder-names.ts';
import { encodeIntegers, encodeNode, encodeTensor } from '../onnx/onnx-encode.ts';
import { ElementType, GraphField, type GraphNode, readNode, readTensor } from '../onnx/onnx-graph.ts';
import { fieldsOf, PREFIX } from '../onnx/onnx-patch.ts';
import { encodeMessage, encodeString, readString, type WireField, wireFields } from '../onnx/wire-format.ts';

interface PatchedGraph {
  readonly fields: readonly WireField[];
  /** The output to read: float32 [logit_rows, vocabulary]. */
  readonly logits: string;
}

/** Operators that project hidden states onto the vocabulary. Their first input is the hidden state. */
const PROJECTIONS = new Set(['MatMul', 'MatMulNBits', 'MatMulBnb4', 'Gemm', 'FusedMatMul']);
/** Maximum number of nodes between projection and output: casts, scalings and soft caps. */
const MAX_TAIL_NODES = 12;

/**
 * Adds the input `logits_index` to a decoder. Hidden states are flattened to [batch · sequence, hidden], and
 * only the selected rows enter the output projection, so an empty index skips it. Half-precision logits are
 * cast to float32. Only the node that reads the hidden state changes; noted shapes are dropped; weights are
 * copied as bytes.
 *
 * With `after-projection` the rows are selected from the logits instead. This is for decoders whose
 * projection is inside a branch, or scales its input by the largest of the selected rows.
 * @throws Error that completes "model.onnx …" if no projection leads to the output `logits`
 */
export function insertLogitsIndex(
  fields: readonly WireField[],
  logits: string,
  selection: 'before-projection' | 'after-projection' = 'before-projection',
): PatchedGraph {
  const after = selection === 'after-projection';
  const match = after ? null : findReader(fields, logits);
  const selected = `${PREFIX}/selected`;
  const runs: Uint8Array[] = [];
  let output = logits;
  for (const field of fields) {
    if (match !== null && field === match.reader) {
      runs.push(
        ...encodeSelection(match.hidden, selected),
        encodeMessage(GraphField.node, renameInput(field, match.hidden, selected)),
      );
      continue;
    }
    // Some exporters note the shapes of inner tensors. After the selection they are wrong, and in
    // half-precision graphs of onnxruntime-genai's builder for the CPU they always are. ONNX Runtime infers
    // shapes itself.
    if (field.field === GraphField.valueInfo) continue;
    const tensor = field.field === GraphField.output ? readTensor(field) : undefined;
    if (tensor?.name === logits) {
      if (after) {
        output = selected;
        runs.push(...encodeSelection(logits, selected));
      }
      if (tensor.elementType !== ElementType.float32) {
        runs.push(encodeNode('Cast', [output], `${PREFIX}/logits`, { to: ElementType.float32 }));
        output = `${PREFIX}/logits`;
      }
      const dimensions = ['logit_rows', tensor.dimensions.at(-1) ?? null];
      runs.push(
        encodeTensor(GraphField.output, { name: output, elementType: ElementType.float32, dimensions }),
      );
      continue;
    }
    runs.push(field.run);
  }
  const input = { name: LOGITS_INDEX, elementType: ElementType.int64, dimensions: ['logit_rows'] };
  runs.push(encodeTensor(GraphField.input, input));
  return { fields: fieldsOf(runs), logits: output };
}

/**
 * Replaces the input `num_logits_to_keep` by the constant 0, because `logits_index` selects the positions.
 */
export function keepAllLogits(fields: readonly WireField[]): WireField[] {
  return fields.flatMap((field) => {
    if (field.field !== GraphField.input) return [field];
    const { name, dimensions } = readTensor(field);
    if (name !== LOGITS_TO_KEEP) return [field];
    const shape = dimensions.map(() => 1);
    return fieldsOf([encodeIntegers(name, ElementType.int64, shape, [0])]);
  });
}

/** Encodes the selection of the rows of [batch, sequence, columns] named by `logits_index`. */
function encodeSelection(from: string, selected: string): Uint8Array[] {
  return [
    encodeNode('Flatten', [from], `${PREFIX}/positions`, { axis: 2 }),
    encodeNode('Gather', [`${PREFIX}/positions`, LOGITS_INDEX], selected, { axis: 0 }),
  ];
}

/** Finds the projection by walking back from the logits. */
function findReader(fields: readonly WireField[], logits: string): { reader: WireField; hidden: string } {
  const producers = new Map<string, { field: WireField; node: GraphNode }>();
  for (const field of fields) {
    if (field.field !== GraphField.node) continue;
    const node = readNode(field);
    for (const name of node.outputs) if (name !== '') producers.set(name, { field, node });
  }
  // Nearest first. A bias can be the first input of the sum and have its own producer.
  const names = [logits];
  for (let at = 0; at < Math.min(names.length, MAX_TAIL_NODES); at++) {
    const producer = producers.get(names[at]!);
    if (producer === undefined) continue;
    const { field, node } = producer;
    const hidden = node.inputs[0];
    if (PROJECTIONS.has(node.operator) && hidden !== undefined) return { reader: field, hidden };
    names.push(...node.inputs.filter((input) => producers.has(input)));
  }
  throw new Error(`has no output projection before ${logits}`);
}

function renameInput(node: WireField, from: string, to: string): Uint8Array[] {
  return [...wireFields(node.bytes)].map((part) =>
    part.field === 1 && readString(part) === from ? encodeString(1, to) : part.run,
  );
}
