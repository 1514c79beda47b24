import type { LinearRecurrenceDesign } from '../../design/mixer-design.ts';
import { type ProjectionDesign, whole } from '../../design/weight-design.ts';
import type { ConfigFields } from '../reading/config-fields.ts';
import type { DecoderRow, Differences, RowContext } from '../reading/decoder-row.ts';
import { kernelLength, projection } from '../reading/design-parts.ts';
import type { Sizes } from '../reading/sizes.ts';

/** Recurrent Gemma: gated linear recurrences in most layers, attention to a window in the others. */

const ATTENDS: Readonly<Record<string, boolean>> = { recurrent: false, attention: true };
const BLOCK_TYPES = ['recurrent', 'recurrent', 'attention'];

/** For each layer, whether it attends: the types are repeated. */
function attendingLayers(fields: ConfigFields, { layers }: Sizes): readonly boolean[] {
  const types = fields.has('block_types') ? fields.texts('block_types') : BLOCK_TYPES;
  const pattern = types.flatMap((type) => ATTENDS[type] ?? []);
  const attends = Array.from({ length: layers }, (_, layer) => pattern[layer % pattern.length]!);
  if (pattern.length === types.length && attends.includes(true)) return attends;
  throw fields.fault('block_types', `${Object.keys(ATTENDS).join(', ')}, with a layer of attention`);
}

/** Each gate has one matrix [inputs, outputs] for each head. */
function gate(name: string, matrix: number, size: number): ProjectionDesign {
  return {
    weight: [{ tensor: `${name}_weight`, matrix, transposed: true }],
    bias: [{ tensor: `${name}_bias`, rows: [{ first: matrix * size, count: size }] }],
  };
}

function recurrence(name: string, width: number, heads: number, length: number): LinearRecurrenceDesign {
  const of = (which: string) => projection(`${name}.${which}`, true);
  const lru = `${name}.rg_lru`;
  return {
    kind: 'linear-recurrence',
    width,
    input: of('linear_x'),
    branch: of('linear_y'),
    activation: 'gelu-tanh',
    kernel: { ...of('conv_1d'), length },
    gates: Array.from({ length: heads }, (_, head) => ({
      input: gate(`${lru}.input_gate`, head, width / heads),
      decay: gate(`${lru}.recurrent_gate`, head, width / heads),
    })),
    decay: whole(`${lru}.recurrent_param`),
    output: of('linear_out'),
  };
}

/** Rounds a factor as transformers stores it. */
function inBfloat16(value: number): number {
  const [word = 0] = new Uint32Array(Float32Array.of(value).buffer);
  const upper = (word + 0x7fff + ((word >>> 16) & 1)) & 0xffff0000;
  return new Float32Array(Uint32Array.of(upper).buffer)[0]!;
}

function recurrentGemma({ fields, sizes }: RowContext): Differences {
  const attends = attendingLayers(fields, sizes);
  const width = fields.optionalCount('lru_width') ?? sizes.hidden;
  if (width % sizes.heads !== 0) throw fields.fault('lru_width', `a multiple of the ${sizes.heads} heads`);
  const length = kernelLength(fields, 'conv1d_width');
  const window = fields.count('attention_window_size', 2048);
  const given = fields.count('intermediate_size');
  const qkv = fields.flag('attention_bias', false);
  const headSize = Math.floor(sizes.hidden / sizes.heads);
  fields.require('head_dim', headSize);
  return {
    sizes: { width: Math.floor(given / 2), headSize },
    names: {
      attentionNorm: 'temporal_pre_norm',
      feedForwardNorm: 'channel_pre_norm',
      query: 'temporal_block.q_proj',
      key: 'temporal_block.k_proj',
      value: 'temporal_block.v_proj',
      output: 'temporal_block.o_proj',
      finalNorm: 'model.final_norm',
      gate: 'mlp_block.gate_proj',
      up: 'mlp_block.up_proj',
      down: 'mlp_block.down_proj',
    },
    norm: { kind: 'rms', epsilon: 'rms_norm_eps', weightOffset: 1 },
    biases: { qkv, output: true, mlp: true },
    activation: () => 'gelu-tanh',
    rotary: { partial: 0.5 },
    tied: true,
    decoder: {
      embeddingScale: inBfloat16(Math.sqrt(sizes.hidden)),
      logitSoftCap: fields.number('logits_soft_cap', 30),
    },
    layer: (index) =>
      attends[index]
        ? { window }
        : { mixer: recurrence(`model.layers.${index}.temporal_block`, width, sizes.heads, length) },
  };
}

export const RECURRENT_GEMMA_ROWS: readonly DecoderRow[] = [
  {
    modelTypes: ['recurrent_gemma'],
    // Published files have no limit of positions. The models were trained with these.
    defaults: { rms_norm_eps: 1e-6, max_position_embeddings: 8192 },
    // How weights were drawn before the training.
    ignored: ['w_init_variance_scale', 'final_w_init_variance_scale', '_block_types'],
    requires: {
      hidden_activation: ['gelu_pytorch_tanh'],
      embeddings_scale_by_sqrt_dim: [true],
    },
    differences: recurrentGemma,
  },
];
