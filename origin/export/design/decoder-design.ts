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
  /** Beside the attention; null = nothing. */
  readonly lowRank: LowRankDesign | null;
  /** What the layer adds of its own vector of each token; null = nothing. */
  readonly tokenInput: TokenInputDesign | null;
  /** [1]: factor of the residual stream after the layer (Gemma 4); null = 1. */
  readonly outputScale: Weight | null;
  /** The layer's part of `DecoderDesign.streams`; null = there is one stream. */
  readonly altUp: AltUpDesign | null;
}

/**
 * LAuReL (Gemma 3n): x = (x + attention(y) + y + norm(up(down(y)))) / √2 in place of x += attention(y), where
 * y is what the attention reads.
 */
export interface LowRankDesign {
  readonly rank: number;
  readonly down: ProjectionDesign;
  readonly up: ProjectionDesign;
  readonly norm: NormDesign;
}

/**
 * Several residual streams, of which layers compute one (AltUp, Gemma 3n). At first, stream i is into[i − 1]
 * of the embedding, and at last outOf[i − 1] is applied to it. Both results are scaled to the root mean
 * square of the first stream, and the mean of all streams is the decoder's result.
 */
export interface StreamsDesign {
  readonly count: number;
  /** The stream that layers compute. */
  readonly active: number;
  /** One for each stream but the first. */
  readonly into: readonly ProjectionDesign[];
  readonly outOf: readonly ProjectionDesign[];
}

/**
 * A layer predicts all streams, computes y from the predicted active stream p[a], and corrects all of them.
 * Prediction: p[i] = x[i] + Σj prediction(route(x[a]))[i, j] x[j]. Correction: x[i] = p[i] + (1 +
 * correction(route(y))[i]) (y − p[a]). Both route by route(x) = tanh(router(norm(x))). What `tokenInput`
 * makes of x[a] · tokenInputScale is added to all streams but the first.
 */
export interface AltUpDesign {
  readonly norm: NormDesign;
  /** [streams, hidden] */
  readonly router: ProjectionDesign;
  /** [streams · streams, streams] */
  readonly prediction: ProjectionDesign;
  /** [streams, streams] */
  readonly correction: ProjectionDesign;
  /** [hidden]; null = 1. */
  readonly tokenInputScale: Weight | null;
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
  /** Rows of `embedding`. Tokens beyond them read the first row. */
  readonly vocabulary: number;
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
  /** Null = one residual stream. */
  readonly streams: StreamsDesign | null;
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
