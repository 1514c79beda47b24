import { encodeNode, encodeTensor } from './onnx-encode.ts';
import {
  ElementType,
  GraphField,
  type GraphNode,
  graphMessage,
  ModelField,
  readNode,
  readTensor,
} from './onnx-graph.ts';
import {
  encodeMessage,
  encodeString,
  messageRuns,
  readString,
  type WireField,
  wireFields,
} from './wire-format.ts';

/** Name of the added input: int64 [logit_rows], indices into the flattened [batch · sequence] positions. */
export const LOGITS_INDEX = 'logits_index';

export interface PatchedGraph {
  readonly fields: readonly WireField[];
  /** The output to read: float32 [logit_rows, vocabulary]. */
  readonly logits: string;
}

/** Operators that project hidden states onto the vocabulary; their first input is the hidden state. */
const PROJECTIONS = new Set(['MatMul', 'MatMulNBits', 'MatMulBnb4', 'Gemm', 'FusedMatMul']);
/** Casts, scalings and soft caps between projection and output; more would be another architecture. */
const LONGEST_TAIL = 12;
const PREFIX = 'continuo';

/**
 * Adds the input `logits_index` to a decoder: the hidden states are flattened to [batch · sequence, hidden] and only
 * the named rows meet the output projection, so that an empty index skips it. Half-precision logits get a cast to
 * float32. Nothing but the node that reads the hidden state changes; weights are copied as bytes.
 *
 * With `selection` after-projection the rows are taken from the logits instead: for decoders whose projection is out
 * of reach inside a branch, or would scale its input by the largest of whichever rows are asked for.
 *
 * Throws an Error that completes "model.onnx …" when no projection leads to the output `logits`.
 */
export function insertLogitsIndex(
  fields: readonly WireField[],
  logits: string,
  selection: 'before-projection' | 'after-projection' = 'before-projection',
): PatchedGraph {
  const after = selection === 'after-projection';
  const found = after ? null : findReader(fields, logits);
  const selected = `${PREFIX}/selected`;
  const runs: Uint8Array[] = [];
  let output = logits;
  for (const field of fields) {
    if (found !== null && field === found.reader) {
      runs.push(
        ...encodeSelection(found.hidden, selected),
        encodeMessage(GraphField.node, renameInput(field, found.hidden, selected)),
      );
      continue;
    }
    const tensor = field.field === GraphField.output ? readTensor(field) : undefined;
    if (tensor?.name === logits) {
      if (after) {
        output = selected;
        runs.push(...encodeSelection(logits, selected));
      }
      if (tensor.elementType === ElementType.float16) {
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
 * Adds an output to a graph: int64 [rank], the sizes of the tensor `of` once it is computed.
 * Throws an Error that completes "model.onnx …".
 */
export function appendShape(fields: readonly WireField[], of: string) {
  const shape = `${PREFIX}/shape`;
  const output = { name: shape, elementType: ElementType.int64, dimensions: [null] };
  const added = [encodeNode('Shape', [of], shape, {}), encodeTensor(GraphField.output, output)];
  return { fields: [...fields, ...fieldsOf(added)], shape };
}

/** A model's graph, field by field, to be patched. Throws an Error that completes "model.onnx …". */
export function graphFields(model: Uint8Array): WireField[] {
  return [...wireFields(graphMessage(model))];
}

/** The model with its graph's fields replaced. */
export function withGraph(model: Uint8Array, graph: readonly WireField[]): Uint8Array {
  const runs = graph.map(({ run }) => run);
  return Buffer.concat(
    [...wireFields(model)].flatMap(({ field, run }) =>
      field === ModelField.graph ? messageRuns(field, runs) : [run],
    ),
  );
}

/** What was encoded, as fields of a graph. */
export function fieldsOf(runs: readonly Uint8Array[]): WireField[] {
  return runs.flatMap((run) => [...wireFields(run)]);
}

/** The rows of [batch, sequence, columns] that `logits_index` names. */
function encodeSelection(from: string, selected: string): Uint8Array[] {
  return [
    encodeNode('Flatten', [from], `${PREFIX}/positions`, { axis: 2 }),
    encodeNode('Gather', [`${PREFIX}/positions`, LOGITS_INDEX], selected, { axis: 0 }),
  ];
}

/** Walks from the logits back to the projection. */
function findReader(fields: readonly WireField[], logits: string): { reader: WireField; hidden: string } {
  const producers = new Map<string, { field: WireField; node: GraphNode }>();
  for (const field of fields) {
    if (field.field !== GraphField.node) continue;
    const node = readNode(field);
    for (const name of node.outputs) if (name !== '') producers.set(name, { field, node });
  }
  let name = logits;
  for (let step = 0; step < LONGEST_TAIL; step++) {
    const producer = producers.get(name);
    if (producer === undefined) break;
    const { field, node } = producer;
    const input = PROJECTIONS.has(node.operator)
      ? node.inputs[0]
      : node.inputs.find((candidate) => producers.has(candidate));
    if (input === undefined) break;
    if (PROJECTIONS.has(node.operator)) return { reader: field, hidden: input };
    name = input;
  }
  throw new Error(`has no output projection in front of ${logits}`);
}

function renameInput(node: WireField, from: string, to: string): Uint8Array[] {
  return [...wireFields(node.bytes)].map((part) =>
    part.field === 1 && readString(part) === from ? encodeString(1, to) : part.run,
  );
}
