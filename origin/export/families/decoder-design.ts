/**
 * Everything that distinguishes one decoder from another, as plain data. A family of models is a function
 * from config.json to a design; the graph writer knows designs only.
 */

/** Rows `first`, `first + step`, … of a tensor: `count` of them. */
export interface RowRange {
  readonly first: number;
  readonly count: number;
  /** 1 if absent. */
  readonly step?: number;
}

/** Rows of one tensor of the checkpoint. */
export interface WeightPart {
  readonly tensor: string;
  /** The rows to take, in this order; absent = all. Of the transposed matrix if `transposed`. */
  readonly rows?: readonly RowRange[];
  /** True if the matrix is stored as [inputs, outputs] (GPT-2's Conv1D). With 3 dimensions, each is. */
  readonly transposed?: boolean;
  /** The matrix of a tensor [count, rows, columns], such as one expert of a stack. */
  readonly matrix?: number;
}

/** Parts below one another: a matrix [outputs, inputs], or a vector (without `rows`, of any shape). */
export type Weight = readonly WeightPart[];

/** All rows of one tensor. */
export const whole = (tensor: string): Weight => [{ tensor }];

/** y = factor · (x · weightᵀ + bias) */
export interface ProjectionDesign {
  readonly weight: Weight;
  readonly bias: Weight | null;
  /** Absent = 1. */
  readonly factor?: number;
}

export interface NormDesign {
  /** rms: x / √(mean x² + ε); layer: (x − mean) / √(variance + ε). */
  readonly kind: 'rms' | 'layer';
  readonly epsilon: number;
  /** Null = 1. */
  readonly weight: Weight | null;
  /** Null = 0. */
  readonly bias: Weight | null;
  /** Added to the stored weight: 1 for Gemma and Nemotron, else 0. */
  readonly weightOffset: 0 | 1;
  /** Of weight and bias; absent = 1. */
  readonly factor?: number;
}

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
export interface StateSpaceMultipliers {
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

/** f in f(gate) · up, or f(up) without a gate. */
export type Activation =
  | 'silu'
  | 'gelu'
  /** 0.5 x (1 + tanh(√(2/π) (x + 0.044715 x³))) */
  | 'gelu-tanh'
  /** x · sigmoid(1.702 x) */
  | 'gelu-sigmoid'
  | 'relu'
  /** max(x, 0)² */
  | 'relu-squared'
  | XieluActivation;

/**
 * Apertus: αp x² + β x for x > 0, else (exp(min(x, ε)) − 1 − x) αn + β x, with αp, αn as the model uses them.
 */
export interface XieluActivation {
  readonly kind: 'xielu';
  /** Scalars before their softplus: αp = softplus(alphaP), αn = β + softplus(alphaN). */
  readonly alphaP: Weight;
  readonly alphaN: Weight;
  readonly beta: number;
  readonly epsilon: number;
}

export interface MlpDesign {
  readonly kind: 'mlp';
  readonly width: number;
  /** Null = y = down(f(up(x))). */
  readonly gate: ProjectionDesign | null;
  readonly up: ProjectionDesign;
  readonly down: ProjectionDesign;
  readonly activation: Activation;
  /**
   * gpt-oss: gate ≤ limit, |up| ≤ limit, y = down((up + 1) · gate · sigmoid(alpha · gate)); `activation` is
   * not used. Absent = f(gate) · up.
   */
  readonly clippedSwiglu?: { readonly alpha: number; readonly limit: number };
  /** Falcon H1: y = output · down(f(gate · gate(x)) · up(x)). Absent = both are 1. */
  readonly multipliers?: { readonly gate: number; readonly output: number };
}

/** Chooses the experts of a token and weighs their results. */
export interface RouterDesign {
  /** Of what the projection reads, and its factor (Gemma 4); null = none. */
  readonly input: { readonly norm: NormDesign; readonly factor: number } | null;
  /** Weight [experts, hidden]. */
  readonly projection: ProjectionDesign;
  /** Experts that a token uses. */
  readonly active: number;
  /** Makes the scores of experts from the projection's logits. */
  readonly scores: 'softmax' | 'sigmoid' | SparseMixer;
  /** [experts]: added to the scores to choose experts, not to weigh them; null = nothing. */
  readonly correction: Weight | null;
  /**
   * Neighbouring experts in `count` groups: experts are chosen from the `chosen` groups with the largest sums
   * of their `best` scores; null = from all.
   */
  readonly groups: { readonly count: number; readonly chosen: number; readonly best: number } | null;
  /** Whether the scores of the chosen experts are divided by their sum, which is at least `smallestSum`. */
  readonly normalized: boolean;
  readonly smallestSum: number;
  /** Added to that sum. */
  readonly epsilon: number;
  /** Factor of the scores of the chosen experts; above 0, usually 1. */
  readonly scale: number;
  /** Whether the scores multiply what the experts read (Llama 4), in place of their results. */
  readonly scalesInput: boolean;
  /** [experts]: factors of each expert's score; null = 1. */
  readonly expertScales: Weight | null;
}

/**
 * Phi 3.5 MoE: each of two experts is the best of those left. Its score is its softmax among those logits s
 * of them for which (best − s) / max(|s|, best) is at most `reach`.
 */
export interface SparseMixer {
  readonly kind: 'sparse-mixer';
  readonly reach: number;
}

export interface ExpertsDesign {
  readonly kind: 'experts';
  readonly experts: readonly MlpDesign[];
  readonly router: RouterDesign;
  /** An MLP that every token uses; `gate` [1, hidden]: its result is multiplied by sigmoid(gate · x). */
  readonly shared: { readonly mlp: MlpDesign; readonly gate: ProjectionDesign | null } | null;
}

/**
 * An MLP beside experts (Gemma 4): mlpOutputNorm(mlp(norm(x))) + expertsOutputNorm(experts(expertsNorm(x))).
 * The router reads x, the residual stream.
 */
export interface MlpAndExpertsDesign {
  readonly kind: 'mlp-and-experts';
  readonly mlp: MlpDesign;
  readonly mlpOutputNorm: NormDesign;
  readonly experts: ExpertsDesign;
  readonly expertsNorm: NormDesign;
  readonly expertsOutputNorm: NormDesign;
}

export type MixerDesign =
  | AttentionDesign
  | ConvolutionDesign
  | LinearAttentionDesign
  | StateSpaceDesign
  | ParallelDesign;

export interface LayerDesign {
  /** What a token reads of earlier ones; null = nothing, in a layer that has only the other (Nemotron H). */
  readonly attention: MixerDesign | null;
  readonly feedForward: MlpDesign | ExpertsDesign | MlpAndExpertsDesign | null;
  /**
   * sequential: x += attention(norm(x)); x += mlp(norm(x)). parallel: x += attention(norm(x)) +
   * mlp(norm'(x)). parallel-shared-norm: as parallel, but the MLP reads what the attention reads.
   */
  readonly residual: 'sequential' | 'parallel' | 'parallel-shared-norm';
  /** Norms before attention and MLP; null = none. */
  readonly attentionNorm: NormDesign | null;
  readonly feedForwardNorm: NormDesign | null;
  /** Norms of the results of attention and MLP, before they are added (OLMo 2, Gemma 2); null = none. */
  readonly attentionOutputNorm: NormDesign | null;
  readonly feedForwardOutputNorm: NormDesign | null;
  /** Norms of the residual stream after each addition (OPT-350m); null = none. */
  readonly afterAttentionNorm: NormDesign | null;
  readonly afterFeedForwardNorm: NormDesign | null;
  /** Factor of the results of attention and MLP before they are added (Granite, MiniCPM); usually 1. */
  readonly residualScale: number;
  /** What the layer adds of its own vector of each token; null = nothing. */
  readonly tokenInput: TokenInputDesign | null;
  /** [1]: factor of the residual stream after the layer (Gemma 4); null = 1. */
  readonly outputScale: Weight | null;
}

/** x += norm(projection(f(gate(x)) · v)), where v is the layer's part of `DecoderDesign.tokenInputs`. */
export interface TokenInputDesign {
  readonly width: number;
  readonly gate: ProjectionDesign;
  readonly activation: Activation;
  readonly projection: ProjectionDesign;
  readonly norm: NormDesign;
}

/**
 * A vector of each token for every layer (Gemma 4), `width` values for each: (embeddingScale · row of
 * `embedding` + norm(projectionScale · projection(x))) / √2, where x is the embedding that the layers read.
 */
export interface TokenInputsDesign {
  readonly width: number;
  /** [vocabulary, layers · width] */
  readonly embedding: Weight;
  readonly embeddingScale: number;
  readonly projection: ProjectionDesign;
  readonly projectionScale: number;
  /** Over `width` values. */
  readonly norm: NormDesign;
}

/** Whether a layer has KV or a state of its own. */
export const keepsCache = ({ attention }: LayerDesign): boolean =>
  attention !== null && (attention.kind !== 'attention' || attention.sharedWith === null);

/** Returns the attention of the layers that have it, of one at least. */
export const attentionsOf = ({ layers }: Pick<DecoderDesign, 'layers'>): readonly AttentionDesign[] =>
  layers.flatMap(({ attention: mixer }) => {
    if (mixer?.kind === 'parallel') return mixer.attention;
    return mixer?.kind === 'attention' ? mixer : [];
  });

export interface DecoderDesign {
  /** Rows of embedding and head. */
  readonly vocabulary: number;
  /** Width of the residual stream. */
  readonly hidden: number;
  /** Positions that the model supports: length of the rotary tables; Infinity for ALiBi without a limit. */
  readonly maxPositions: number;
  /** [vocabulary, hidden], or narrower with `embeddingProjection`. */
  readonly embedding: Weight;
  /** Factor of the embedding (Gemma, Granite, MiniCPM); usually 1. */
  readonly embeddingScale: number;
  /** Norm of the embedding (BLOOM); null = none. */
  readonly embeddingNorm: NormDesign | null;
  /** From the embedding's width to `hidden`, and back before the head (OPT-350m); null = none. */
  readonly embeddingProjection: { readonly into: ProjectionDesign; readonly outOf: ProjectionDesign } | null;
  /** Vectors by position that are added to the embedding; the row of position p is p + offset (OPT: 2). */
  readonly learnedPositions: { readonly weight: Weight; readonly offset: number } | null;
  /** Null = none. */
  readonly tokenInputs: TokenInputsDesign | null;
  readonly layers: readonly LayerDesign[];
  readonly finalNorm: NormDesign | null;
  /** Weight equal to `embedding` = tied: stored once. */
  readonly head: ProjectionDesign;
  /** Replaces a tied head if the checkpoint has it, with other values than the embedding's. */
  readonly separateHead: Weight;
  /** Factor of the logits, before the soft cap; usually 1. */
  readonly logitScale: number;
  /** Limits logits to ± this value by tanh; null = no limit. */
  readonly logitSoftCap: number | null;
}
