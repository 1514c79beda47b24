import { encodeNode, encodeTensor } from './onnx-encode.ts';
import { ElementType, GraphField, graphMessage, ModelField } from './onnx-graph.ts';
import { joined, messageRuns, type WireField, wireFields } from './wire-format.ts';

/** Begins the names of what is added to graphs. */
export const PREFIX = 'continuo';

/**
 * Adds an output to a graph: int64 [rank], the dimensions of the tensor `of`.
 * @throws Error that completes "model.onnx …"
 */
export function appendShape(fields: readonly WireField[], of: string) {
  const shape = `${PREFIX}/shape`;
  const output = { name: shape, elementType: ElementType.int64, dimensions: [null] };
  const added = [encodeNode('Shape', [of], shape, {}), encodeTensor(GraphField.output, output)];
  return { fields: [...fields, ...fieldsOf(added)], shape };
}

/** Returns the fields of a model's graph. @throws Error that completes "model.onnx …" */
export function graphFields(model: Uint8Array): WireField[] {
  return [...wireFields(graphMessage(model))];
}

/** Returns the model with the fields of its graph replaced. */
export function withGraph(model: Uint8Array, graph: readonly WireField[]): Uint8Array {
  const runs = graph.map(({ run }) => run);
  return joined(
    [...wireFields(model)].flatMap(({ field, run }) =>
      field === ModelField.graph ? messageRuns(field, runs) : [run],
    ),
  );
}

/** Parses encoded parts as fields of a graph. */
export function fieldsOf(runs: readonly Uint8Array[]): WireField[] {
  return runs.flatMap((run) => [...wireFields(run)]);
}
