import type { Activation, ExpertsDesign, MlpAndExpertsDesign, MlpDesign } from './feed-forward-design.ts';
import type { AttentionDesign, MixerDesign } from './mixer-design.ts';
import type { NormDesign, ProjectionDesign, Weight } from './weight-design.ts';

/**
 * Everything that distinguishes one decoder from another, as plain data. A family of models is a function
 * from config.json to a design; the graph writer knows designs only.
 */

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

/** Returns the attention of the layers that have it. */
export const attentionsOf = ({ layers }: Pick<DecoderDesign, 'layers'>): readonly AttentionDesign[] =>
  layers.flatMap(({ attention: mixer }) => {
    if (mixer?.kind === 'parallel' || mixer?.kind === 'block-before') return mixer.attention;
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
