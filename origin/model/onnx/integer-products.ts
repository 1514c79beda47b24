import { encodeInitializer, encodeIntegers, encodeNode, encodeRawData } from './onnx-encode.ts';
import { ElementType, GraphField, type GraphNode, type OnnxGraph, readNode } from './onnx-graph.ts';
import { fieldsOf, graphFields, PREFIX, withGraph } from './onnx-patch.ts';

/** Ends the name of scales [N, blocks] that are equal in all blocks of a row. */
export const ROW_SCALES = '/row-scales';

const MICROSOFT = 'com.microsoft';
/** The accuracy level of MatMulNBits that rounds activations to 8 bits. */
const EIGHT_BITS = 4;
const MAX_LEVEL = 127;

const named = (name: string): string => `${PREFIX}/${name}`;
const LAST_AXIS = named('last-axis');
const FIRST = named('first');
const SECOND = named('second');
const FIRST_BLOCK = named('first-block');
/** The level of 0 in unsigned bytes, and the bit that makes a byte signed. */
const ZERO_LEVEL = named('zero-level');
const LEVEL = named('level');

const CONSTANTS = [
  encodeIntegers(LAST_AXIS, ElementType.int64, [1], [-1]),
  encodeIntegers(FIRST, ElementType.int64, [1], [0]),
  encodeIntegers(SECOND, ElementType.int64, [1], [1]),
  encodeIntegers(FIRST_BLOCK, ElementType.int64, [], [0]),
  scalar(ZERO_LEVEL, ElementType.uint8, Uint8Array.of(128)),
  scalar(LEVEL, ElementType.float32, new Uint8Array(Float32Array.of(1 / MAX_LEVEL).buffer)),
];

function scalar(name: string, elementType: number, bytes: Uint8Array): Uint8Array {
  return encodeInitializer({ name, elementType, dimensions: [] }, [encodeRawData([bytes])]);
}

/**
 * Replaces products with 8-bit weights that have one scale per row by products of integers, for the CPU and
 * WebAssembly. Each row of activations is divided by its largest magnitude and rounded to levels. Sums of
 * levels are exact, so the bits of a row do not depend on the other rows.
 * @param index input that selects rows, and may select none
 */
export function withIntegerProducts(model: Uint8Array, graph: OnnxGraph, index: string): Uint8Array {
  const suits = (node: GraphNode) => isReplaceable(node, graph);
  if (!graph.nodes.some(suits)) return model;
  const selected = dependents(graph, index);
  const written = new Set<string>();
  const once = (name: string, nodes: Uint8Array[]) => {
    if (written.has(name)) return [];
    written.add(name);
    return nodes;
  };
  const fields = graphFields(model).flatMap((field) => {
    const node = field.field === GraphField.node ? readNode(field) : null;
    if (node === null || !suits(node)) return [field];
    const [input, levels] = node.inputs as [string, string];
    return fieldsOf([
      ...once(levels, weightNodes(node)),
      ...once(input, roundingNodes(input, selected.has(input))),
      ...productNodes(node),
    ]);
  });
  return withGraph(model, [...fieldsOf(CONSTANTS), ...fields]);
}

/** Without zero points, and with whole blocks, as the builder writes them. */
function isReplaceable({ operator, inputs, integers }: GraphNode, { initializers }: OnnxGraph): boolean {
  const [, levels = '', scales = '', zeroPoints = '', groups = ''] = inputs;
  return (
    operator === 'MatMulNBits' &&
    integers.get('bits') === 8 &&
    integers.get('accuracy_level') === EIGHT_BITS &&
    integers.get('K')! % integers.get('block_size')! === 0 &&
    scales.endsWith(ROW_SCALES) &&
    initializers.has(levels) &&
    initializers.has(scales) &&
    zeroPoints === '' &&
    groups === ''
  );
}

/** Returns the tensors that depend on one. Nodes are in topological order. */
function dependents({ nodes }: OnnxGraph, tensor: string): ReadonlySet<string> {
  const tensors = new Set([tensor]);
  for (const { inputs, outputs } of nodes)
    if (inputs.some((name) => tensors.has(name))) for (const name of outputs) tensors.add(name);
  return tensors;
}

const weightName = (levels: string): string => named(`integers/${levels}`);

/** Weights [K, N] as int8, and scales [N]: constants, which ONNX Runtime computes while it loads. */
function weightNodes({ inputs, integers }: GraphNode): Uint8Array[] {
  const [, levels, scales] = inputs as [string, string, string];
  const name = weightName(levels);
  const part = (step: string) => `${name}/${step}`;
  const dimensions = [integers.get('N')!, integers.get('K')!];
  return [
    encodeIntegers(part('shape'), ElementType.int64, [2], dimensions),
    encodeNode('Reshape', [levels, part('shape')], part('rows')),
    encodeNode('Transpose', [part('rows')], part('columns')),
    encodeNode('BitwiseXor', [part('columns'), ZERO_LEVEL], part('signed')),
    encodeNode('Cast', [part('signed')], name, { to: ElementType.int8 }),
    encodeNode('Gather', [scales, FIRST_BLOCK], part('scales'), { axis: 1 }),
  ];
}

const roundedName = (input: string): string => named(`rounded/${input}`);

/**
 * Levels of the rows as uint8, and the largest magnitude of each row.
 * @param mayBeEmpty whether there may be no rows: then ONNX Runtime does not reduce the last axis
 */
function roundingNodes(input: string, mayBeEmpty: boolean): Uint8Array[] {
  const name = roundedName(input);
  const part = (step: string) => `${name}/${step}`;
  const reduced = mayBeEmpty ? part('reduced') : part('largest');
  return [
    encodeNode('Abs', [input], part('sizes')),
    encodeNode('ReduceMax', [part('sizes'), LAST_AXIS], reduced),
    ...(mayBeEmpty ? [encodeNode('Slice', [reduced, FIRST, SECOND, LAST_AXIS], part('largest'))] : []),
    encodeNode('Div', [input, part('largest')], part('shares')),
    encodeNode('QuantizeLinear', [part('shares'), LEVEL, ZERO_LEVEL], name),
  ];
}

function productNodes({ inputs, outputs }: GraphNode): Uint8Array[] {
  const [input, levels] = inputs as [string, string];
  const output = outputs[0]!;
  const bias = inputs[5] ?? '';
  const weights = weightName(levels);
  const rounded = roundedName(input);
  const part = (step: string) => named(`product/${output}/${step}`);
  const scaled = bias === '' ? output : part('scaled');
  const factors = [rounded, weights, LEVEL, `${weights}/scales`, ZERO_LEVEL];
  return [
    encodeNode('MatMulIntegerToFloat', factors, part('sums'), {}, MICROSOFT),
    encodeNode('Mul', [part('sums'), `${rounded}/largest`], scaled),
    ...(bias === '' ? [] : [encodeNode('Add', [scaled, bias], output)]),
  ];
}
