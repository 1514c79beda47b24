import type { AltUpDesign, DecoderDesign, LowRankDesign } from '../../design/decoder-design.ts';
import { whole } from '../../design/weight-design.ts';
import type { ConfigFields } from '../reading/config-fields.ts';
import type { DecoderRow, Differences, LayerDifferences, RowContext } from '../reading/decoder-row.ts';
import { projection, readSlidingLayers, rmsNorm } from '../reading/design-parts.ts';
import { GEMMA_BLOCK, sharedLayers, tokenInput, tokenInputs } from './gemma4-rows.ts';

/** Gemma 3n: several streams, of which layers compute one; few gates of early layers pass. */

/** intermediate_size: a number for each layer, or one for all. */
function widthsOf({ fields, sizes }: RowContext): readonly number[] {
  const name = 'intermediate_size';
  if (!Array.isArray(fields.value(name))) return Array<number>(sizes.layers).fill(fields.count(name));
  const widths = fields.numbers(name);
  if (widths.length === sizes.layers && widths.every((width) => Number.isSafeInteger(width) && width > 0))
    return widths;
  throw fields.fault(name, `a positive integer, or a list of ${sizes.layers}`);
}

const SHARES = [0.001, 0.999] as const;

/** For each layer, how many deviations above their mean gates must be to pass; null = all pass. */
function thresholdsOf({ fields, sizes }: RowContext): readonly (number | null)[] {
  const name = 'activation_sparsity_pattern';
  const sparse = sizes.layers > 10 ? 10 : 0;
  const absent = Array.from({ length: sizes.layers }, (_, layer) => (layer < sparse ? 0.95 : 0));
  const shares = fields.has(name) ? fields.numbers(name) : absent;
  const isKnown = shares.every((share) => share === 0 || (share >= SHARES[0] && share <= SHARES[1]));
  if (shares.length === sizes.layers && isKnown)
    return shares.map((share) => (share === 0 ? null : normalQuantile(Math.fround(share))));
  throw fields.fault(name, `a list of ${sizes.layers} shares: 0, or ${SHARES.join(' to ')}`);
}

const STEPS = 60;

/** The value that a standard normal variable exceeds with the probability 1 − share, by Newton's method. */
function normalQuantile(share: number): number {
  let value = 0;
  for (let step = 0; step < STEPS; step++) {
    value -= (normalShare(value) - share) / normalDensity(value);
  }
  return value;
}

const normalDensity = (value: number): number => Math.exp((-value * value) / 2) / Math.sqrt(2 * Math.PI);

/** The share of standard normal variables below a value x: ½ + φ(x) · (x + x³ / 3 + x⁵ / (3 · 5) + …). */
export function normalShare(value: number): number {
  let [sum, term] = [value, value];
  for (let n = 3; sum + term !== sum; n += 2) {
    term *= (value * value) / n;
    sum += term;
  }
  return 0.5 + normalDensity(value) * sum;
}

function altUpOf(name: string, { fields, sizes }: RowContext, epsilon: number): AltUpDesign {
  const isScaled = fields.flag('altup_correct_scale', true);
  return {
    norm: { ...rmsNorm(`${name}.router_norm`, epsilon), factor: 1 / sizes.hidden },
    router: projection(`${name}.modality_router`, false),
    prediction: projection(`${name}.prediction_coefs`, false),
    correction: projection(`${name}.correction_coefs`, false),
    tokenInputScale: isScaled ? whole(`${name}.correct_output_scale`) : null,
  };
}

function streamsOf(fields: ConfigFields): DecoderDesign['streams'] {
  const count = fields.count('altup_num_inputs', 4);
  if (count < 2) throw fields.fault('altup_num_inputs', 'at least 2');
  const active = fields.number('altup_active_idx', 0);
  if (!Number.isInteger(active) || active < 0 || active >= count)
    throw fields.fault('altup_active_idx', `0 to ${count - 1}`);
  const each = (name: string) =>
    Array.from({ length: count - 1 }, (_, index) => projection(`model.${name}.${index}`, false));
  return { count, active, into: each('altup_projections'), outOf: each('altup_unembed_projections') };
}

const lowRankOf = (name: string, rank: number, epsilon: number): LowRankDesign => ({
  rank,
  down: projection(`${name}.linear_left`, false),
  up: projection(`${name}.linear_right`, false),
  norm: rmsNorm(`${name}.post_laurel_norm`, epsilon),
});

function differences(row: RowContext): Differences {
  const { fields, sizes } = row;
  const isSliding = readSlidingLayers(fields, sizes.layers, (layer) => (layer + 1) % 5 !== 0);
  const sharedWith = sharedLayers(fields, isSliding);
  const window = fields.count('sliding_window');
  const epsilon = fields.number('rms_norm_eps');
  const rank = fields.count('laurel_rank', 64);
  const width = fields.count('hidden_size_per_layer_input', 256);
  const vocabulary = fields.count('vocab_size_per_layer_input', 262_144);
  const widths = widthsOf(row);
  const thresholds = thresholdsOf(row);
  const layer = (index: number): LayerDifferences => {
    const name = `model.layers.${index}`;
    const threshold = thresholds[index]!;
    return {
      window: isSliding[index] ? window : null,
      sharedWith: sharedWith(index),
      sizes: { width: widths[index]! },
      ...(threshold !== null && { mlp: { gateThreshold: threshold } }),
      parts: {
        lowRank: lowRankOf(`${name}.laurel`, rank, epsilon),
        tokenInput: tokenInput(name, width, epsilon),
        altUp: altUpOf(`${name}.altup`, row, epsilon),
      },
    };
  };
  return {
    ...GEMMA_BLOCK,
    rotary: { theta: 1_000_000, layerType: 'full_attention' },
    slidingRotary: { thetaField: 'rope_local_base_freq', layerType: 'sliding_attention' },
    layer,
    decoder: {
      embeddingScale: Math.sqrt(sizes.hidden),
      logitSoftCap: fields.optionalNumber('final_logit_softcapping'),
      tokenInputs: tokenInputs(sizes, { width, vocabulary }, epsilon),
      streams: streamsOf(fields),
    },
  };
}

export const GEMMA3N_ROWS: readonly DecoderRow[] = [
  {
    modelTypes: ['gemma3n_text'],
    within: ['gemma3n'],
    sizeFields: { width: [] },
    defaults: {
      vocab_size: 262_400,
      hidden_size: 2048,
      intermediate_size: 16_384,
      num_hidden_layers: 35,
      num_attention_heads: 8,
      num_key_value_heads: 2,
      num_kv_shared_layers: 15,
      head_dim: 256,
      max_position_embeddings: 32_768,
      rms_norm_eps: 1e-6,
      sliding_window: 512,
      final_logit_softcapping: 30,
    },
    // Coefficients are clipped in training only.
    ignored: ['altup_coef_clip', 'altup_lr_multiplier', 'query_pre_attn_scalar', 'cache_implementation'],
    requires: { hidden_activation: ['gelu_pytorch_tanh'], attention_bias: [false] },
    differences,
  },
];
