import type { AttentionDesign, LatentDesign, LatentVector } from '../design/mixer-design.ts';
import { type GraphContext, splitLast, writeLinear } from './linear.ts';
import { writeOptionalNorm } from './norms.ts';

/**
 * Latent attention, expanded to heads: keys and values are stored as the operator for attention reads them,
 * so the KV of a position has the size of all heads.
 */

type LatentAttention = AttentionDesign & { readonly latent: LatentDesign };

/** Writes queries, keys and values [batch, sequence, heads · headSize]. Values are padded with zeros. */
export function projectLatent(
  context: GraphContext,
  design: LatentAttention,
  input: string,
  hidden: number,
): string[] {
  const { graph } = context;
  const { latent, heads, headSize } = design;
  const { sharedSize, valueSize, keyValue } = latent;
  const queryInput =
    latent.query === null
      ? input
      : narrowed(context, latent.query, projectedBy(context, latent.query, input, hidden));
  const queryWidth = latent.query?.width ?? hidden;
  const query = writeLinear(context, queryInput, [design.query], queryWidth, [heads * headSize]);
  const sizes = [keyValue.width, sharedSize];
  const both = writeLinear(context, input, [keyValue.projection, latent.sharedKey], hidden, sizes);
  const [vector = '', shared = ''] = splitLast(graph, both, sizes);
  const unsharedSize = headSize - sharedSize;
  const kvSizes = [heads * unsharedSize, heads * valueSize];
  const kv = writeLinear(
    context,
    narrowed(context, keyValue, vector),
    [design.key, design.value],
    keyValue.width,
    kvSizes,
  );
  const [ownKeys = '', values = ''] = splitLast(graph, kv, kvSizes);
  const toHeads = (name: string, size: number) =>
    graph.node('Reshape', [name, graph.integers(0, 0, heads, size)]);
  const toWidth = (name: string) => graph.node('Reshape', [name, graph.integers(0, 0, heads * headSize)]);
  const repeated = graph.node('Expand', [
    graph.node('Unsqueeze', [shared, graph.integers(2)]),
    graph.integers(1, 1, heads, 1),
  ]);
  const keys = graph.node('Concat', [repeated, toHeads(ownKeys, unsharedSize)], { integers: { axis: -1 } });
  const padding = graph.integers(0, 0, 0, 0, 0, 0, 0, headSize - valueSize);
  const padded =
    headSize === valueSize ? values : toWidth(graph.node('Pad', [toHeads(values, valueSize), padding]));
  return [query, toWidth(keys), padded];
}

/** Removes the padding of values from the results of attention: [batch, sequence, heads · valueSize]. */
export function withoutPadding({ graph }: GraphContext, design: LatentAttention, attended: string): string {
  const { latent, heads, headSize } = design;
  if (headSize === latent.valueSize) return attended;
  const split = graph.node('Reshape', [attended, graph.integers(0, 0, heads, headSize)]);
  const bounds = [graph.integers(0), graph.integers(latent.valueSize), graph.integers(3)];
  const cut = graph.node('Slice', [split, ...bounds]);
  return graph.node('Reshape', [cut, graph.integers(0, 0, heads * latent.valueSize)]);
}

function projectedBy(context: GraphContext, vector: LatentVector, input: string, hidden: number): string {
  return writeLinear(context, input, [vector.projection], hidden, [vector.width]);
}

const narrowed = (context: GraphContext, { norm, width }: LatentVector, projected: string): string =>
  writeOptionalNorm(context, projected, norm, width);
