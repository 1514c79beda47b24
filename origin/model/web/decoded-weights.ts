import { encodeInitializer, encodeIntegers, encodeNode, encodeRawData } from '../onnx/onnx-encode.ts';
import { ElementType, GraphField, type GraphNode, type OnnxGraph, readNode } from '../onnx/onnx-graph.ts';
import { fieldsOf, graphFields, PREFIX, withGraph } from '../onnx/onnx-patch.ts';
import { encodeInteger, encodeMessage, encodeString } from '../onnx/wire-format.ts';

/**
 * Decodes weights in 8-bit blocks once, for ONNX Runtime's WebAssembly. It has no kernel for them: it decodes
 * all of them at each run, and does not round activations as a server does. So here the graph rounds them, to
 * 8 bits per block, and results differ from a server's by the order of sums only. A token of the built-in
 * model takes a ninth of the time.
 */

type Files = ReadonlyMap<string, Uint8Array>;

interface Decoded {
  readonly model: Uint8Array;
  /** External data of the model, with the decoded weights. */
  readonly files: Files;
}

/** Larger models keep their weights as they are: decoded, they take 4 bytes each. */
const MAX_WEIGHTS = 64 * 2 ** 20;
/** The largest level of an activation. */
const LEVELS = `${PREFIX}/levels`;
/** The largest activation of a block of zeros, which must not be divided by. */
const LEAST = `${PREFIX}/least`;
const LAST_AXIS = `${PREFIX}/last-axis`;
/** The level of the weight 0. */
const ZERO = 128;

export function withDecodedWeights(model: Uint8Array, graph: OnnxGraph, files: Files): Decoded {
  const suits = (node: GraphNode) => isDecodable(node, graph);
  const weights = graph.nodes.filter(suits).reduce((sum, node) => sum + sizeOf(node).total, 0);
  if (weights === 0 || weights > MAX_WEIGHTS) return { model, files };
  const decoded = new Map(files);
  const rounded = new Set<string>();
  const fields = graphFields(model).flatMap((field) => {
    const node = field.field === GraphField.node ? readNode(field) : null;
    if (node === null || !suits(node)) return [field];
    const [input, levels, scales] = node.inputs as [string, string, string];
    const name = `${PREFIX}/decoded/${levels}`;
    const floats = decode(node, rawOf(levels, graph, files), rawOf(scales, graph, files));
    decoded.set(name, new Uint8Array(floats.buffer));
    const isRounded = rounded.has(input);
    rounded.add(input);
    return fieldsOf([
      ...(isRounded ? [] : roundBlocks(input, sizeOf(node))),
      externalFloats(name, [sizeOf(node).K, sizeOf(node).N]),
      encodeNode('MatMul', [roundedName(input), name], node.outputs[0]!),
    ]);
  });
  const constants = [
    floatConstant(LEVELS, 127),
    floatConstant(LEAST, 1e-30),
    encodeIntegers(LAST_AXIS, ElementType.int64, [1], [-1]),
  ];
  return { model: withGraph(model, [...fieldsOf(constants), ...fields]), files: decoded };
}

/** Without zero points and bias, as `continuo model build` writes 8-bit weights. */
function isDecodable({ operator, integers, inputs }: GraphNode, { initializers }: OnnxGraph): boolean {
  const rounds = integers.get('bits') === 8 && integers.get('accuracy_level') === 4;
  const isPlain = operator === 'MatMulNBits' && rounds && inputs.length === 3;
  return isPlain && inputs.slice(1).every((name) => initializers.get(name)?.external);
}

function sizeOf({ integers }: GraphNode) {
  const [K, N, block] = ['K', 'N', 'block_size'].map((name) => integers.get(name)!) as [
    number,
    number,
    number,
  ];
  return { K, N, block, total: K * N };
}

function rawOf(name: string, graph: OnnxGraph, files: Files): Uint8Array {
  const { file, offset, length } = graph.initializers.get(name)!.external!;
  const content = files.get(file);
  if (content === undefined || length === null || offset + length > content.length)
    throw new Error(`needs ${name} in ${file}, which is missing or too short`);
  return new Uint8Array(content.subarray(offset, offset + length));
}

/** Returns [K, N] weights from levels [N, K / block, block] and scales [N, K / block]. */
function decode(node: GraphNode, levels: Uint8Array, scaleBytes: Uint8Array): Float32Array {
  const { K, N, block } = sizeOf(node);
  const scales = new Float32Array(scaleBytes.buffer);
  const weights = new Float32Array(K * N);
  for (let row = 0; row < N; row++) {
    for (let column = 0; column < K; column++) {
      const at = row * K + column;
      weights[column * N + row] = (levels[at]! - ZERO) * scales[Math.floor(at / block)]!;
    }
  }
  return weights;
}

const roundedName = (input: string): string => `${PREFIX}/rounded/${input}`;

/** Rounds each block to 8 bits of its largest activation, as MatMulNBits with accuracy level 4 does. */
function roundBlocks(input: string, { K, block }: { K: number; block: number }): Uint8Array[] {
  const part = (name: string) => `${roundedName(input)}/${name}`;
  return [
    encodeIntegers(part('blocks'), ElementType.int64, [3], [-1, K / block, block]),
    encodeNode('Reshape', [input, part('blocks')], part('blocked')),
    encodeNode('Abs', [part('blocked')], part('sizes')),
    encodeNode('ReduceMax', [part('sizes'), LAST_AXIS], part('largest'), { keepdims: 1 }),
    encodeNode('Max', [part('largest'), LEAST], part('divisor')),
    encodeNode('Div', [LEVELS, part('divisor')], part('inverse')),
    encodeNode('Div', [part('divisor'), LEVELS], part('scale')),
    encodeNode('Mul', [part('blocked'), part('inverse')], part('scaled')),
    encodeNode('Round', [part('scaled')], part('levels')),
    encodeNode('Mul', [part('levels'), part('scale')], part('values')),
    encodeNode('Shape', [input], part('shape')),
    encodeNode('Reshape', [part('values'), part('shape')], roundedName(input)),
  ];
}

const floatConstant = (name: string, value: number): Uint8Array =>
  encodeInitializer({ name, elementType: ElementType.float32, dimensions: [] }, [
    encodeRawData([new Uint8Array(Float32Array.of(value).buffer)]),
  ]);

/** A tensor that is a whole file of its own name. */
const externalFloats = (name: string, dimensions: readonly number[]): Uint8Array =>
  encodeInitializer({ name, elementType: ElementType.float32, dimensions }, [
    encodeMessage(13, [encodeString(1, 'location'), encodeString(2, name)]),
    encodeInteger(14, 1),
  ]);
