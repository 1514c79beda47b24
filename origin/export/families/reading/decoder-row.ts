import type { DecoderDesign, LayerDesign } from '../../design/decoder-design.ts';
import type {
  Activation,
  MlpAndExpertsDesign,
  MlpDesign,
  RouterDesign,
} from '../../design/feed-forward-design.ts';
import type { AttentionDesign, MixerDesign, ParallelDesign } from '../../design/mixer-design.ts';
import type { ConfigFields } from './config-fields.ts';
import type { RotaryOptions } from './rotary.ts';
import type { SizeRules, Sizes } from './sizes.ts';

/** A row of the table of families: how a decoder differs from Llama's. What is absent is as in Llama. */
export interface DecoderRow extends SizeRules {
  /** Values of model_type in config.json. */
  readonly modelTypes: readonly string[];
  /** Values of model_type of models with images, whose text_config has one of `modelTypes`. */
  readonly within?: readonly string[];
  /** Values of fields that config.json does not have, where a published one may omit them. */
  readonly defaults?: Readonly<Record<string, unknown>>;
  /** Neutral whatever their value, beside those that are for every family. */
  readonly ignored?: readonly string[];
  /**
   * Beginnings that names of tensors may have in place of the first one, which the design uses. Absent =
   * `model.`, nothing and `model.language_model.`. Any name may follow `language_model.`.
   */
  readonly prefixes?: readonly string[];
  /** Parts of tensors' names that checkpoints write otherwise: the design's, and the other one. */
  readonly aliases?: Readonly<Record<string, string>>;
  /** Values of fields with which they change nothing; others are refused. */
  readonly requires?: Readonly<Record<string, readonly unknown[]>>;
  readonly differences: (row: RowContext) => Differences;
}

/** What a row may read to find its differences. */
export interface RowContext {
  /** Fields that nothing reads are refused afterwards. */
  readonly fields: ConfigFields;
  readonly sizes: Sizes;
}

export interface Differences {
  /** Sizes that do not follow from `sizeFields`. */
  readonly sizes?: Partial<Sizes>;
  readonly names?: Partial<Names>;
  readonly norm?: NormStyle;
  readonly biases?: Partial<Biases>;
  /** Order of the outputs of `names.qkv`; absent = three matrices. See `fusedRows`. */
  readonly fused?: 'blocks' | 'by-kv-head' | null;
  /** True if `names.query` has a gate of the results below the queries of each head. */
  readonly gatedHeads?: boolean;
  /** True if matrices are stored as [inputs, outputs]. */
  readonly transposed?: boolean;
  /** Fused: gate and up are the two halves of `names.gateUp`. Plain: without gate. */
  readonly mlp?: 'gated' | 'fused' | 'plain';
  readonly mlpMultipliers?: NonNullable<MlpDesign['multipliers']>;
  /** Field of the activation, or the activation of every layer. */
  readonly activation?: string | ((layer: string) => Activation);
  readonly headNorm?: HeadNormStyle | null;
  /** Queries, keys and values of a layer, in place of the projections of `names`. */
  readonly projections?: (layer: string) => Pick<AttentionDesign, 'latent' | 'query' | 'key' | 'value'>;
  /** True if values have a norm over each head without a weight. */
  readonly normedValues?: boolean;
  readonly attention?: Partial<
    Pick<AttentionDesign, 'clip' | 'scale' | 'softCap' | 'slopes' | 'normPlace' | 'queryScaling'>
  >;
  /** Null = none. */
  readonly rotary?: Partial<RotaryOptions> | null;
  /** Rotary positions of layers with a window, if they are others. */
  readonly slidingRotary?: Partial<RotaryOptions>;
  /** Most positions that layers can have. */
  readonly maxPositions?: number;
  /** What differs by layer. */
  readonly layer?: (index: number) => LayerDifferences;
  readonly experts?: ExpertsStyle | null;
  readonly residual?: LayerDesign['residual'];
  readonly residualScale?: number;
  /** tie_word_embeddings if config.json does not say. */
  readonly tied?: boolean;
  readonly decoder?: Partial<DecoderDesign>;
}

export interface LayerDifferences {
  readonly sizes?: Partial<Pick<Sizes, 'kvHeads' | 'headSize' | 'width'>>;
  readonly sharedWith?: number | null;
  /** An MLP beside the experts. */
  readonly beside?: MlpNorms;
  /** What only this layer has of an MLP. */
  readonly mlp?: Pick<MlpDesign, 'gateThreshold'>;
  readonly parts?: Partial<Pick<LayerDesign, 'lowRank' | 'tokenInput' | 'outputScale' | 'altUp'>>;
  /** Null = attends to all positions. */
  readonly window?: number | null;
  /** False = without rotary positions. */
  readonly rotated?: boolean;
  readonly scale?: number;
  /** What differs in the attention of this layer. */
  readonly attention?: Partial<Pick<AttentionDesign, 'queryNorm' | 'keyNorm' | 'queryScaling'>>;
  /** False = an MLP in a model with experts. */
  readonly sparse?: boolean;
  /** The layer has only attention or what is in its place, or only the MLP or experts. */
  readonly only?: 'mixer' | 'feed-forward';
  /** Names that differ in this layer. */
  readonly names?: Partial<Names>;
  /** In place of attention. */
  readonly mixer?: Exclude<MixerDesign, AttentionDesign | ParallelDesign> | null;
  /** Beside attention. */
  readonly parallel?: Omit<ParallelDesign, 'kind' | 'attention'>;
}

export interface NormStyle {
  readonly kind: 'rms' | 'layer';
  /** Field of the epsilon, or its value. */
  readonly epsilon: string | number;
  readonly weightOffset?: 0 | 1;
  /** False = without weight. */
  readonly weighted?: boolean;
  readonly biased?: boolean;
}

/** Names of the norms of an MLP beside experts. */
type MlpNorms = Readonly<Record<keyof Omit<MlpAndExpertsDesign, 'kind' | 'mlp' | 'experts'>, string>>;

interface HeadNormStyle {
  readonly over: 'head' | 'each-head' | 'width';
  /** True if the heads' norms are tensors of their own, `.norms.0` and so on. */
  readonly apart?: boolean;
  readonly biased?: boolean;
}

export interface Biases {
  readonly qkv: boolean;
  readonly output: boolean;
  readonly mlp: boolean;
  readonly head: boolean;
}

export interface ExpertsStyle {
  /** Field of the experts' width. */
  readonly width: string;
  /** Field of the number of experts, and how many a token uses; absent = as Qwen and Mixtral name them. */
  readonly counts?: { readonly experts: string; readonly active: number };
  readonly normalized: boolean;
  readonly router: string;
  readonly routerBias?: boolean;
  /** What differs from a softmax over all experts. */
  readonly routing?: Partial<
    Pick<RouterDesign, 'scores' | 'groups' | 'smallestSum' | 'epsilon' | 'scale' | 'scalesInput'>
  >;
  /** Of a layer: the norm of what the router reads, and factors of its scores. */
  readonly routerScales?: (layer: string) => Pick<RouterDesign, 'input' | 'expertScales'>;
  /** Name of the vector that is added to the scores to choose experts. */
  readonly correction?: string;
  /** Names of an expert's matrices under the layer, by index; or stacks of all experts' matrices. */
  readonly matrices:
    | {
        readonly of: (expert: number) => Readonly<Record<'up' | 'down', string>> & { readonly gate?: string };
      }
    | {
        readonly stacks: Readonly<Record<'gateUp' | 'down', string>>;
        readonly clipped: ClippedSwiglu | null;
        /** True if matrices are [inputs, outputs]; those of clipped ones always are. */
        readonly transposed?: boolean;
      };
  /**
   * An MLP beside the experts: its name, its width, and the name of its gate if it has one; or the MLP that
   * the layer had without experts.
   */
  readonly shared?: { readonly name: string; readonly width: number; readonly gate?: string } | 'mlp';
}

type ClippedSwiglu = { readonly alpha: number; readonly limit: number };

/** Names of tensors without `.weight`: of the model, then below a layer. '' = the model has none. */
export const LLAMA_NAMES = {
  embedding: 'model.embed_tokens',
  layers: 'model.layers',
  finalNorm: 'model.norm',
  head: 'lm_head',
  query: 'self_attn.q_proj',
  key: 'self_attn.k_proj',
  value: 'self_attn.v_proj',
  qkv: 'self_attn.qkv_proj',
  output: 'self_attn.o_proj',
  sinks: '',
  queryNorm: 'self_attn.q_norm',
  keyNorm: 'self_attn.k_norm',
  gate: 'mlp.gate_proj',
  up: 'mlp.up_proj',
  gateUp: 'mlp.gate_up_proj',
  down: 'mlp.down_proj',
  attentionNorm: 'input_layernorm',
  feedForwardNorm: 'post_attention_layernorm',
  attentionOutputNorm: '',
  feedForwardOutputNorm: '',
  afterAttentionNorm: '',
  afterFeedForwardNorm: '',
};

export type Names = Readonly<Record<keyof typeof LLAMA_NAMES, string>>;
