import {
  DEFAULT_NAMES,
  LAST_POSITIONS,
  layerName,
  TOTAL_LENGTH,
} from '@continuo/origin/model/config/decoder-names.ts';
import type { AttentionDesign, ProjectionDesign, RotaryDesign } from '../families/decoder-design.ts';
import { WeightType } from './graph-builder.ts';
import { projectLatent, withoutPadding } from './latent-attention.ts';
import {
  type GraphContext,
  haveSameFormat,
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
  context: GraphContext,
  positions: Positions,
  design: AttentionDesign,
  layer: number,
  input: string,
  hidden: number,
): string {
  const { graph, type } = context;
  const { heads, kvHeads, headSize, rotary } = design;
  const inside = rotary !== null && rotatesInside(design, rotary);
  const { latent } = design;
  const projected =
    latent === null
      ? project(context, design, input, hidden)
      : projectLatent(context, { ...design, latent }, input, hidden);
  const outside = rotary !== null && !inside ? rotary : null;
  const queries = prepare(context, positions, design, projected, outside);
  const kv = ['batch_size', kvHeads, 'past_sequence_length', headSize];
  const past = [DEFAULT_NAMES.pastKey, DEFAULT_NAMES.pastValue].map((name) => {
    graph.input({ name: layerName(name, layer), elementType: WeightType[type], dimensions: kv });
    return layerName(name, layer);
  });
  const present = [DEFAULT_NAMES.presentKey, DEFAULT_NAMES.presentValue].map((name) => {
    const dimensions = ['batch_size', kvHeads, 'total_sequence_length', headSize];
    graph.output({ name: layerName(name, layer), elementType: WeightType[type], dimensions });
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
  const sizes = sizesOf(design);
  const projections = [query, key, value];
  const packed = haveSameFormat(context, projections, hidden, sizes);
  return packed
    ? [writeLinear(context, input, projections, hidden, sizes)]
    : projections.map((projection, index) =>
        writeLinear(context, input, [projection], hidden, [sizes[index]!]),
      );
}

/** Limits of values follow norms (OLMoE). */
function clipped({ graph, type }: GraphContext, { clip }: AttentionDesign, input: string): string {
  if (clip === null) return input;
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
  const { queryNorm, keyNorm, queryScaling, heads, kvHeads, headSize } = design;
  const changes = queryNorm !== null || keyNorm !== null || rotary !== null || queryScaling !== null;
  if (projected.length === 1 && !changes) return [clipped(context, design, projected[0]!), '', ''];
  const parts = projected.length === 1 ? splitLast(context.graph, projected[0]!, sizesOf(design)) : projected;
  const [query = '', key = '', value = ''] = parts;
  const norm = (name: string, of: AttentionDesign['queryNorm'], count: number) =>
    clipped(context, design, of === null ? name : writeHeadNorm(context, name, of, count, headSize));
  const rotate = (name: string, count: number) => {
    if (rotary === null) return name;
    return graph.node('RotaryEmbedding', [name, positions.ids(), ...positions.tables(rotary)], {
      microsoft: true,
      integers: {
        interleaved: rotary.interleaved ? 1 : 0,
        num_heads: count,
        rotary_embedding_dim: rotary.frequencies.length * 2 === headSize ? 0 : rotary.frequencies.length * 2,
      },
    });
  };
  const both = (name: string, of: AttentionDesign['queryNorm'], count: number) =>
    design.normPlace === 'before-rotary'
      ? rotate(norm(name, of, count), count)
      : norm(rotate(name, count), of, count);
  const queries = both(query, queryNorm, heads);
  const scaled =
    queryScaling === null ? queries : graph.node('Mul', [queries, positions.queryFactors(queryScaling)]);
  return [scaled, both(key, keyNorm, kvHeads), clipped(context, design, value)];
}
