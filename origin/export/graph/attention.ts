import {
  DEFAULT_NAMES,
  LAST_POSITIONS,
  layerName,
  SHARED_KEY,
  SHARED_VALUE,
  TOTAL_LENGTH,
} from '@continuo/origin/model/config/decoder-names.ts';
import { ElementType } from '@continuo/origin/model/onnx/onnx-graph.ts';
import type { AttentionDesign, RotaryDesign } from '../design/mixer-design.ts';
import type { ProjectionDesign } from '../design/weight-design.ts';
import { requireHalfOrSingle } from './float-type.ts';
import { projectLatent, withoutPadding } from './latent-attention.ts';
import {
  type GraphContext,
  haveSameFormat,
  inEightBits,
  nameOf,
  splitLast,
  trimmed,
  vectorTensor,
  writeLinear,
} from './linear.ts';
import { writeHeadNorm } from './norms.ts';
import type { Positions } from './positions.ts';

/** GroupQueryAttention rotates itself if heads and pairs are multiples of these. */
const ROTARY_HEAD_MULTIPLE = 16;
const ROTARY_PAIR_MULTIPLE = 8;

/** Writes the attention of one layer over [batch, sequence, hidden], with its output projection. */
export function writeAttention(
  layers: GraphContext,
  positions: Positions,
  described: AttentionDesign,
  layer: number,
  input: string,
  hidden: number,
): string {
  const context = inEightBits(layers);
  const { graph, type } = context;
  const design = type === 'float32' ? withUnitScale(described) : described;
  const { heads, kvHeads, headSize, rotary } = design;
  const { latent, sharedWith } = design;
  if (sharedWith !== null)
    return writeSharedAttention(context, positions, design, { layer, readLayer: sharedWith }, input, hidden);
  const inside = rotary !== null && rotatesInside(design, rotary);
  const projected =
    latent === null
      ? project(context, design, input, design.inputWidth ?? hidden)
      : projectLatent(context, { ...design, latent }, input, hidden);
  const outside = rotary !== null && !inside ? rotary : null;
  const queries = prepare(context, positions, design, projected, outside);
  const kv = ['batch_size', kvHeads, 'past_sequence_length', headSize];
  const past = [DEFAULT_NAMES.pastKey, DEFAULT_NAMES.pastValue].map((name) => {
    graph.input({ name: layerName(name, layer), elementType: ElementType[type], dimensions: kv });
    return layerName(name, layer);
  });
  const present = [DEFAULT_NAMES.presentKey, DEFAULT_NAMES.presentValue].map((name) => {
    const dimensions = ['batch_size', kvHeads, 'total_sequence_length', headSize];
    graph.output({ name: layerName(name, layer), elementType: ElementType[type], dimensions });
    return layerName(name, layer);
  });
  const tables = inside ? positions.tables(rotary) : ['', ''];
  const bias = design.slopes === null ? '' : positions.biases(design.slopes);
  const sinks = design.sinks === null ? '' : vectorTensor(context, design.sinks, heads);
  const lengths = [LAST_POSITIONS, TOTAL_LENGTH];
  const inputs = [...queries, ...past, ...lengths, ...tables, '', bias, sinks];
  const attended = graph.node('GroupQueryAttention', trimmed(inputs), {
    microsoft: true,
    outputs: [graph.newName('attended'), ...present],
    integers: {
      num_heads: heads,
      kv_num_heads: kvHeads,
      do_rotary: inside ? 1 : 0,
      rotary_interleaved: rotary?.interleaved ? 1 : 0,
      local_window_size: design.window ?? -1,
    },
    floats: { scale: design.scale, ...(design.softCap !== null && { softcap: design.softCap }) },
  });
  const results = latent === null ? attended : withoutPadding(context, { ...design, latent }, attended);
  const width = heads * (latent?.valueSize ?? headSize);
  const gated = design.gate === null ? results : opened(context, results, design.gate, input, hidden, width);
  return writeLinear(context, gated, [design.output], width, [hidden]);
}

/**
 * Attention to the keys and values of an earlier layer, which has written those of the run already. The
 * operator reads keys and values of no positions for it.
 */
function writeSharedAttention(
  context: GraphContext,
  positions: Positions,
  design: AttentionDesign,
  { layer, readLayer }: { readonly layer: number; readonly readLayer: number },
  input: string,
  hidden: number,
): string {
  const { graph, type } = context;
  const { heads, kvHeads, headSize, rotary, queryNorm } = design;
  const width = heads * headSize;
  const projected = writeLinear(context, input, [design.query], hidden, [width]);
  const normed =
    queryNorm === null ? projected : writeHeadNorm(context, projected, queryNorm, heads, headSize);
  const query = rotary === null ? normed : rotate(context, positions, rotary, normed, heads, headSize);
  const bounds = [graph.integers(0, 0), graph.integers(0, kvHeads * headSize), graph.integers(1, 2)];
  const none = graph.node('Slice', [query, ...bounds]);
  const past = [DEFAULT_NAMES.presentKey, DEFAULT_NAMES.presentValue].map((name) =>
    layerName(name, readLayer),
  );
  const bound = [SHARED_KEY, SHARED_VALUE].map((name) => {
    const dimensions = ['batch_size', kvHeads, 'total_sequence_length', headSize];
    graph.output({ name: layerName(name, layer), elementType: ElementType[type], dimensions });
    return layerName(name, layer);
  });
  const inputs = [query, none, none, ...past, LAST_POSITIONS, TOTAL_LENGTH];
  const attended = graph.node('GroupQueryAttention', inputs, {
    microsoft: true,
    outputs: [graph.newName('attended'), ...bound],
    integers: { num_heads: heads, kv_num_heads: kvHeads, local_window_size: design.window ?? -1 },
    floats: { scale: design.scale },
  });
  return writeLinear(context, attended, [design.output], width, [hidden]);
}

/**
 * The scale of scores as a factor of the queries' weights. ONNX Runtime has a faster product for a single
 * query if the operator's scale is 1.
 */
function withUnitScale(design: AttentionDesign): AttentionDesign {
  const { clip, query, queryNorm, scale } = design;
  if (clip !== null) return design;
  return queryNorm === null
    ? { ...design, scale: 1, query: { ...query, factor: scale } }
    : { ...design, scale: 1, queryNorm: { ...queryNorm, factor: scale } };
}

/** Multiplies the results of attention by their gate. */
function opened(
  context: GraphContext,
  attended: string,
  gate: ProjectionDesign,
  input: string,
  hidden: number,
  width: number,
): string {
  const { graph } = context;
  const open = graph.node('Sigmoid', [writeLinear(context, input, [gate], hidden, [width])]);
  return graph.node('Mul', [attended, open]);
}

function rotatesInside(design: AttentionDesign, { frequencies }: RotaryDesign): boolean {
  const normed = design.queryNorm !== null || design.keyNorm !== null;
  if (normed && design.normPlace === 'after-rotary') return false;
  return design.headSize % ROTARY_HEAD_MULTIPLE === 0 && frequencies.length % ROTARY_PAIR_MULTIPLE === 0;
}

/** Queries, keys and values in one tensor if their weights can be one matrix, else in three. */
function project(context: GraphContext, design: AttentionDesign, input: string, hidden: number): string[] {
  const { query, key, value } = design;
  if (nameOf(value.weight) === nameOf(key.weight)) {
    const sizes = sizesOf(design).slice(0, 2);
    const [queries = '', keys = ''] = splitLast(
      context.graph,
      writeLinear(context, input, [query, key], hidden, sizes),
      sizes,
    );
    return [queries, keys, keys];
  }
  const sizes = sizesOf(design);
  const projections = [query, key, value];
  const packed = haveSameFormat(context, projections, hidden, sizes);
  return packed
    ? [writeLinear(context, input, projections, hidden, sizes)]
    : projections.map((projection, index) =>
        writeLinear(context, input, [projection], hidden, [sizes[index]!]),
      );
}

function rotate(
  { graph }: GraphContext,
  positions: Positions,
  rotary: RotaryDesign,
  input: string,
  heads: number,
  headSize: number,
): string {
  const rotated = rotary.frequencies.length * 2;
  return graph.node('RotaryEmbedding', [input, positions.ids(), ...positions.tables(rotary)], {
    microsoft: true,
    integers: {
      interleaved: rotary.interleaved ? 1 : 0,
      num_heads: heads,
      rotary_embedding_dim: rotated === headSize ? 0 : rotated,
    },
  });
}

/** Limits of values follow norms (OLMoE). */
function clipped({ graph, type }: GraphContext, { clip }: AttentionDesign, input: string): string {
  if (clip === null) return input;
  requireHalfOrSingle(type, 'limited queries and keys');
  return graph.node('Clip', [input, graph.scalar(-clip, type), graph.scalar(clip, type)]);
}

const sizesOf = ({ heads, kvHeads, headSize }: AttentionDesign): number[] => [
  heads * headSize,
  kvHeads * headSize,
  kvHeads * headSize,
];

/** Norms and rotation outside of the operator. Returns its first three inputs, packed if nothing is to do. */
function prepare(
  context: GraphContext,
  positions: Positions,
  design: AttentionDesign,
  projected: readonly string[],
  rotary: RotaryDesign | null,
): string[] {
  const { graph } = context;
  const { queryNorm, keyNorm, valueNorm, queryScaling, heads, kvHeads, headSize } = design;
  const changes = queryNorm !== null || keyNorm !== null || rotary !== null || queryScaling !== null;
  if (projected.length === 1 && !changes) return [clipped(context, design, projected[0]!), '', ''];
  const parts = projected.length === 1 ? splitLast(context.graph, projected[0]!, sizesOf(design)) : projected;
  const [query = '', key = '', value = ''] = parts;
  const norm = (name: string, of: AttentionDesign['queryNorm'], count: number) =>
    clipped(context, design, of === null ? name : writeHeadNorm(context, name, of, count, headSize));
  const rotated = (name: string, count: number) =>
    rotary === null ? name : rotate(context, positions, rotary, name, count, headSize);
  const both = (name: string, of: AttentionDesign['queryNorm'], count: number) =>
    design.normPlace === 'before-rotary'
      ? rotated(norm(name, of, count), count)
      : norm(rotated(name, count), of, count);
  const queries = both(query, queryNorm, heads);
  const scaled =
    queryScaling === null ? queries : graph.node('Mul', [queries, positions.queryFactors(queryScaling)]);
  return [scaled, both(key, keyNorm, kvHeads), norm(value, valueNorm, kvHeads)];
}
