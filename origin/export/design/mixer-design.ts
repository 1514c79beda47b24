import type { Activation, MlpDesign } from './feed-forward-design.ts';
import type { NormDesign, ProjectionDesign, Weight } from './weight-design.ts';

/** Parts of a decoder as data: what a token reads of earlier ones. */

/** Norm of queries or keys. */
export interface HeadNormDesign extends NormDesign {
  /**
   * head: over each head, weight [headSize]; each-head: over each head, weight [heads · headSize]; width:
   * over all heads together, weight [heads · headSize].
   */
  readonly over: 'head' | 'each-head' | 'width';
}

/** Angles of position p: p · frequencies[i] for the pair i of each head. */
export interface RotaryDesign {
  /** What the frequencies were computed from. */
  readonly base: number;
  /** Radians per position, one for each rotated pair: half of the rotated dimensions. */
  readonly frequencies: readonly number[];
  /** Factor of cosine and sine, from yarn and longrope; else 1. */
  readonly magnitude: number;
  /** False: pairs are (i, i + pairs), as in Llama. True: pairs are (2i, 2i + 1), as in GPT-J. */
  readonly interleaved: boolean;
}

/**
 * Latent attention (DeepSeek): queries, keys and values are projected from narrower vectors. The first values
 * of each head of keys are the same in all heads.
 */
export interface LatentDesign {
  /** What `query` projects from; null = from the input. */
  readonly query: LatentVector | null;
  /** What `key` and `value` project from. */
  readonly keyValue: LatentVector;
  /** From the input to the first values of each key; `key` has the others. */
  readonly sharedKey: ProjectionDesign;
  readonly sharedSize: number;
  /** Values of a head before they are padded to `headSize`. */
  readonly valueSize: number;
}

export interface LatentVector {
  readonly width: number;
  readonly projection: ProjectionDesign;
  readonly norm: NormDesign;
}

export interface AttentionDesign {
  readonly kind: 'attention';
  /**
   * The layer whose keys and values are read, for layers that have none (Gemma 4): `key`, `value` and their
   * norms are not used. Null = its own.
   */
  readonly sharedWith: number | null;
  readonly heads: number;
  readonly kvHeads: number;
  readonly headSize: number;
  /** Width of what queries, keys and values are projected from; absent = the residual stream's. */
  readonly inputWidth?: number;
  /** Null = the projections read the input. */
  readonly latent: LatentDesign | null;
  readonly query: ProjectionDesign;
  readonly key: ProjectionDesign;
  readonly value: ProjectionDesign;
  readonly output: ProjectionDesign;
  /** To heads · headSize: the results are multiplied by its sigmoid before `output`; null = they are not. */
  readonly gate: ProjectionDesign | null;
  /** Limits queries, keys and values to ± this value (clip_qkv) after the norms; null = no limit. */
  readonly clip: number | null;
  readonly queryNorm: HeadNormDesign | null;
  readonly keyNorm: HeadNormDesign | null;
  readonly valueNorm: HeadNormDesign | null;
  /** Whether the norms of queries and keys come before or after the rotation. */
  readonly normPlace: 'before-rotary' | 'after-rotary';
  /** Factor of the scores; usually 1 / √headSize. */
  readonly scale: number;
  /**
   * Queries of position p are multiplied by 1 + beta · ln(1 + ⌊(p + first) / originalPositions⌋) (Ministral
   * 3, Llama 4); null = they are not.
   */
  readonly queryScaling: {
    readonly beta: number;
    readonly originalPositions: number;
    readonly first: 0 | 1;
  } | null;
  /** Positions that a token attends to, itself included; null = all. */
  readonly window: number | null;
  /** Limits scores s to ± this value by tanh; null = no limit. */
  readonly softCap: number | null;
  /** Logit [heads] of a position without value that the softmax also sees; null = none. */
  readonly sinks: Weight | null;
  /** Null = positions are not rotated. */
  readonly rotary: RotaryDesign | null;
  /** ALiBi: slope of each head, which scores lose per position of distance; null = none. */
  readonly slopes: readonly number[] | null;
}

/** A convolution of each channel over its last positions. */
export interface CausalKernel {
  /** Positions that a token reads, itself included; at least 2. */
  readonly length: number;
  /** [channels, length], the newest position last. */
  readonly weight: Weight;
  readonly bias: Weight | null;
}

/**
 * A gated convolution over the last positions (LFM 2): the input projection has three parts b, c and x; y =
 * output(c · (kernel ∗ (b · x) + bias)).
 */
export interface ConvolutionDesign {
  readonly kind: 'convolution';
  /** To 3 · hidden. */
  readonly input: ProjectionDesign;
  readonly kernel: CausalKernel;
  readonly output: ProjectionDesign;
}

/** Heads of a recurrence, which has a state [keySize, valueSize] for each. */
export interface RecurrenceShape {
  /** Heads of keys and queries: a divisor of `heads`. Neighbouring heads share one. */
  readonly keyHeads: number;
  /** Heads of values and states. */
  readonly heads: number;
  readonly keySize: number;
  readonly valueSize: number;
}

/**
 * A gated delta network (Qwen 3 Next, Qwen 3.5, OLMo Hybrid): queries, keys and values pass a convolution and
 * SiLU, queries and keys are divided by their length. Each position changes a head's state S, and reads it: S
 * = e^g S; S += β k (v − Sᵀ k); y = Sᵀ q / √keySize, with g = −e^logDecay · softplus(decay + decayBias) and β
 * = rateScale · sigmoid(rate). The result is output(norm(y) · silu(gate)).
 */
export interface LinearAttentionDesign extends RecurrenceShape {
  readonly kind: 'linear-attention';
  readonly query: ProjectionDesign;
  readonly key: ProjectionDesign;
  readonly value: ProjectionDesign;
  /** Of the channels of queries, keys and values, in this order. */
  readonly kernel: CausalKernel;
  /** To `heads`, like `rate` and the two vectors. */
  readonly decay: ProjectionDesign;
  readonly decayBias: Weight;
  readonly logDecay: Weight;
  readonly rate: ProjectionDesign;
  readonly rateScale: 1 | 2;
  /** To heads · valueSize. */
  readonly gate: ProjectionDesign;
  /**
   * Kimi Linear: each value of a key has its own decay, so `decay` and its bias have heads · keySize values.
   * Decay and gate project from vectors of `width`. The result is output(norm(y) · sigmoid(gate)). Null = as
   * above.
   */
  readonly narrow: {
    readonly width: number;
    readonly decay: ProjectionDesign;
    readonly gate: ProjectionDesign;
  } | null;
  /** Over each head. */
  readonly norm: NormDesign;
  readonly output: ProjectionDesign;
}

/**
 * Mamba 2: values, keys and queries (x, B and C of the paper) pass a convolution and SiLU. Each position
 * changes a head's state S, and reads it: S = e^(−step · e^logDecay) S; S += k (step · v)ᵀ; y = Sᵀ q + skip ·
 * v, with step = softplus(step + stepBias) within its limits. The result is output(norm(y · silu(gate))).
 */
export interface StateSpaceDesign extends RecurrenceShape {
  readonly kind: 'state-space';
  /** To gate, values, keys and queries, in this order. */
  readonly input: ProjectionDesign;
  /** To `heads`, like the three vectors. */
  readonly step: ProjectionDesign;
  readonly stepBias: Weight;
  readonly stepLimits: readonly [min: number, max: number];
  readonly logDecay: Weight;
  readonly skip: Weight;
  /** Of the channels of values, keys and queries, in this order. */
  readonly kernel: CausalKernel;
  /** Over as many parts of all heads as there are key heads; null = none. */
  readonly norm: NormDesign | null;
  /** before-gate: output(norm(y) · silu(gate)). */
  readonly normPlace: 'after-gate' | 'before-gate';
  readonly output: ProjectionDesign;
  /** Null = all are 1. */
  readonly multipliers: StateSpaceMultipliers | null;
}

/** Factors of what the layer reads, of the results of its input projections, and of its result. */
interface StateSpaceMultipliers {
  readonly input: number;
  readonly gate: number;
  readonly value: number;
  readonly key: number;
  readonly query: number;
  readonly step: number;
  readonly output: number;
}

/** Attention beside a state space (Falcon H1): outputFactor · attention(inputFactor · x) + stateSpace(x). */
export interface ParallelDesign {
  readonly kind: 'parallel';
  readonly attention: AttentionDesign;
  readonly inputFactor: number;
  readonly outputFactor: number;
  readonly stateSpace: StateSpaceDesign;
}

/**
 * A block of attention and MLP before a state space (Zamba 2): t = linear(mlp(mlpNorm(attention(norm(x beside
 * the embedding))))); y = stateSpace(stateSpaceNorm(x + t)). Layers may have the same block.
 */
export interface BlockBeforeDesign {
  readonly kind: 'block-before';
  /** Over twice the width of the residual stream. */
  readonly norm: NormDesign;
  readonly attention: AttentionDesign;
  readonly mlpNorm: NormDesign;
  readonly mlp: MlpDesign;
  readonly linear: ProjectionDesign;
  readonly stateSpaceNorm: NormDesign;
  readonly stateSpace: StateSpaceDesign;
}

/**
 * A gated linear recurrence (Recurrent Gemma): x = kernel ∗ input. Each value has the state h = e^a h +
 * √(1 − e^2a) · i · x, without the root at the first position. In it, r and i are the sigmoids of both gates
 * of x, and a = −8 r · softplus(decay). The result is output(h · f(branch)).
 */
export interface LinearRecurrenceDesign {
  readonly kind: 'linear-recurrence';
  readonly width: number;
  readonly input: ProjectionDesign;
  readonly branch: ProjectionDesign;
  readonly activation: Activation;
  readonly kernel: CausalKernel;
  /** Of each block of neighbouring values. */
  readonly gates: readonly { readonly input: ProjectionDesign; readonly decay: ProjectionDesign }[];
  readonly decay: Weight;
  readonly output: ProjectionDesign;
}

export type MixerDesign =
  | AttentionDesign
  | ConvolutionDesign
  | LinearAttentionDesign
  | StateSpaceDesign
  | ParallelDesign
  | BlockBeforeDesign
  | LinearRecurrenceDesign;
