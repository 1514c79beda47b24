import { encodeModel, encodeNode, encodeTensor } from './onnx-encode.ts';
import { ElementType, GraphField } from './onnx-graph.ts';

export const FROM_ROWS = 'from_rows';
export const TO_ROWS = 'to_rows';
export const sourceName = (tensor: number): string => `source_${tensor}`;
export const targetName = (tensor: number): string => `target_${tensor}`;
export const resultName = (tensor: number): string => `result_${tensor}`;

/**
 * Encodes an ONNX model that copies rows between pairs of matrices: rows `from_rows` [n] of source [·, width]
 * replace rows `to_rows` [n, 1] of target [·, width]. If target and result are bound to the same memory,
 * ScatterND does not touch the other rows.
 */
export function rowCopyGraph(tensors: number, elementType: number): Uint8Array {
  const matrix = (name: string, rows: string) => ({ name, elementType, dimensions: [rows, 'width'] });
  const graph: Uint8Array[] = [];
  for (let tensor = 0; tensor < tensors; tensor++) {
    const moved = `moved_${tensor}`;
    graph.push(
      encodeNode('Gather', [sourceName(tensor), FROM_ROWS], moved),
      encodeNode('ScatterND', [targetName(tensor), TO_ROWS, moved], resultName(tensor)),
      encodeTensor(GraphField.input, matrix(sourceName(tensor), 'source_rows')),
      encodeTensor(GraphField.input, matrix(targetName(tensor), 'target_rows')),
      encodeTensor(GraphField.output, matrix(resultName(tensor), 'target_rows')),
    );
  }
  const rows = { elementType: ElementType.int64 };
  graph.push(
    encodeTensor(GraphField.input, { ...rows, name: FROM_ROWS, dimensions: ['n'] }),
    encodeTensor(GraphField.input, { ...rows, name: TO_ROWS, dimensions: ['n', 1] }),
  );
  return encodeModel('row_copy', graph);
}
