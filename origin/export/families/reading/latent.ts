import type { LatentDesign } from '../../design/mixer-design.ts';
import type { ProjectionDesign, RowRange } from '../../design/weight-design.ts';
import type { ConfigFields } from './config-fields.ts';
import type { Differences, RowContext } from './decoder-row.ts';
import { projection, rmsNorm } from './design-parts.ts';
import { yarnMagnitude } from './rotary.ts';

/** Latent attention: keys and values of all heads from one narrow vector. */

/** Of the latent vectors: config.json does not have it. */
const LATENT_EPSILON = 1e-6;

interface LatentSizes {
  readonly heads: number;
  readonly rotated: number;
  readonly plain: number;
  readonly value: number;
  readonly kvRank: number;
  readonly queryRank: number | null;
}

function readLatentSizes({ fields, sizes }: RowContext, valueSize?: number): LatentSizes {
  const [rotated, plain] = [fields.count('qk_rope_head_dim'), fields.count('qk_nope_head_dim')];
  const value = fields.count('v_head_dim', valueSize);
  if (value > rotated + plain) throw fields.fault('v_head_dim', `at most ${rotated + plain}`);
  if (sizes.kvHeads !== sizes.heads) throw fields.fault('num_key_value_heads', `${sizes.heads}`);
  fields.require('qk_head_dim', rotated + plain);
  const kvRank = fields.count('kv_lora_rank');
  return {
    heads: sizes.heads,
    rotated,
    plain,
    value,
    kvRank,
    queryRank: fields.optionalCount('q_lora_rank'),
  };
}

/** The same rows of each head. */
const ofHeads = (heads: number, size: number, parts: readonly RowRange[]): RowRange[] =>
  Array.from({ length: heads }, (_, head) =>
    parts.map(({ first, count }) => ({ first: head * size + first, count })),
  ).flat();

/**
 * The rotated values of a head lie behind the others, but the operator for attention rotates the first ones.
 * Scores do not depend on the order.
 */
function latentProjections(sizes: LatentSizes, biased: boolean) {
  const { heads, rotated, plain, value, kvRank, queryRank } = sizes;
  const norm = (name: string) => rmsNorm(name, LATENT_EPSILON);
  return (layer: string) => {
    const name = `${layer}.self_attn`;
    const rowsOf = (which: string, rows: readonly RowRange[], bias = false): ProjectionDesign => ({
      weight: [{ tensor: `${name}.${which}.weight`, rows }],
      bias: bias ? [{ tensor: `${name}.${which}.bias`, rows }] : null,
    });
    const query: LatentDesign['query'] =
      queryRank === null
        ? null
        : {
            width: queryRank,
            projection: projection(`${name}.q_a_proj`, biased),
            norm: norm(`${name}.q_a_layernorm`),
          };
    const down = (first: number, count: number) => rowsOf('kv_a_proj_with_mqa', [{ first, count }], biased);
    const queryRows = [
      { first: plain, count: rotated },
      { first: 0, count: plain },
    ];
    const kvRows = (first: number, count: number) => ofHeads(heads, plain + value, [{ first, count }]);
    return {
      latent: {
        query,
        keyValue: { width: kvRank, projection: down(0, kvRank), norm: norm(`${name}.kv_a_layernorm`) },
        sharedKey: down(kvRank, rotated),
        sharedSize: rotated,
        valueSize: value,
      },
      query: rowsOf(query === null ? 'q_proj' : 'q_b_proj', ofHeads(heads, plain + rotated, queryRows)),
      key: rowsOf('kv_b_proj', kvRows(0, plain)),
      value: rowsOf('kv_b_proj', kvRows(plain, value)),
    };
  };
}

/** YaRN's factor of all dimensions, which multiplies queries and keys here. */
function scaleFactor(fields: ConfigFields): number {
  const parameters = fields.inner('rope_parameters') ?? fields.inner('rope_scaling');
  if (parameters === null) return 1;
  const type = parameters.text('rope_type', parameters.text('type', 'default'));
  if (type === 'default' || !parameters.has('mscale_all_dim')) return 1;
  const share = parameters.number('mscale_all_dim');
  return share === 0 ? 1 : yarnMagnitude(parameters.number('factor'), share) ** 2;
}

export function latent(row: RowContext, options: { interleaved: boolean; valueSize?: number }): Differences {
  const { fields } = row;
  const sizes = readLatentSizes(row, options.valueSize);
  const bias = fields.flag('attention_bias', false);
  const headSize = sizes.rotated + sizes.plain;
  return {
    sizes: { headSize },
    biases: { output: bias },
    projections: latentProjections(sizes, bias),
    attention: { scale: scaleFactor(fields) / Math.sqrt(headSize) },
    rotary: { headSize: sizes.rotated, interleaved: options.interleaved },
  };
}
