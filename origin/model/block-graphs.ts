import { encodeInitializer, encodeModel, encodeNode, encodeTensor } from './onnx-encode.ts';
import { ElementType, GraphField } from './onnx-graph.ts';

/** Logits [blocks, blockSize]. */
export const LOGITS = 'logits';
/** [blocks, 1] each. */
export const MAXIMA = 'maxima';
export const TOTALS = 'totals';
export const SUMS = 'sums';
/** [1] each. */
export const HIGHEST = 'highest';
export const COLDNESS = 'coldness';

const AXES = 'axes';

/** MAXIMA and TOTALS of the blocks. ONNX Runtime's ReduceMax loses NaN; the plain sums show it, and +∞. */
export function maximaGraph(): Uint8Array {
  return model(
    [encodeNode('ReduceMax', [LOGITS, AXES], MAXIMA), encodeNode('ReduceSum', [LOGITS, AXES], TOTALS)],
    {
      inputs: [],
      outputs: [MAXIMA, TOTALS],
    },
  );
}

/** SUMS of e^((z − HIGHEST) · COLDNESS) over the blocks. */
export function sumsGraph(): Uint8Array {
  const nodes = [
    encodeNode('Sub', [LOGITS, HIGHEST], 'below'),
    encodeNode('Mul', ['below', COLDNESS], 'scaled'),
    encodeNode('Exp', ['scaled'], 'weights'),
    encodeNode('ReduceSum', ['weights', AXES], SUMS),
  ];
  return model(nodes, { inputs: [HIGHEST, COLDNESS], outputs: [SUMS] });
}

function model(
  nodes: readonly Uint8Array[],
  { inputs, outputs }: { readonly inputs: readonly string[]; readonly outputs: readonly string[] },
): Uint8Array {
  const float32 = (name: string, dimensions: readonly (string | number)[]) => ({
    name,
    elementType: ElementType.float32,
    dimensions,
  });
  return encodeModel('block_reductions', [
    ...nodes,
    encodeInitializer(AXES, [1]),
    encodeTensor(GraphField.input, float32(LOGITS, ['blocks', 'block_size'])),
    ...inputs.map((name) => encodeTensor(GraphField.input, float32(name, [1]))),
    ...outputs.map((name) => encodeTensor(GraphField.output, float32(name, ['blocks', 1]))),
  ]);
}
