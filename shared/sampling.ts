import * as z from 'zod';

/**
 * Sampling parameters of one sequence, in wire form: every field is present, because the Worker has applied
 * the dialect's defaults. origin/sampling has the formulas. Each field states its "off" value.
 */
export const samplingParameters = z.object({
  /** Softmax temperature; below 1e-5 it is greedy. The dialect has its bound, as for the penalties. */
  temperature: z.number().min(0),
  /** Half-width of dynamic temperature; 0 = off. */
  dynatempRange: z.number().min(0),
  dynatempExponent: z.number().min(0),
  /** Keep the k most likely tokens; 0 = off. */
  topK: z.int().min(0),
  /** Nucleus mass in 0..1; 1 = off, 0 keeps the top token. */
  topP: z.number().min(0).max(1),
  /** Keep p ≥ minP · max p; 0 = off. */
  minP: z.number().min(0).max(1),
  /** Locally typical mass; 1 = off. */
  typicalP: z.number().min(0).max(1),
  /** Mask logits below max − n·σ; ≤ 0 = off. */
  topNSigma: z.number(),
  xtcProbability: z.number().min(0).max(1),
  xtcThreshold: z.number().min(0).max(1),
  /** 0 = off, 1 or 2 = Mirostat version. */
  mirostat: z.union([z.literal(0), z.literal(1), z.literal(2)]),
  /** Target surprise in bits. */
  mirostatTau: z.number().min(0),
  mirostatEta: z.number().min(0).max(1),
  /** Above 0; 1 = off. */
  repetitionPenalty: z.number().gt(0),
  frequencyPenalty: z.number(),
  presencePenalty: z.number(),
  /** Window in tokens for the three penalties; −1 = whole context, 0 = penalties off. */
  repeatLastN: z.int().min(-1),
  /** Which tokens frequency and presence penalties count: generated ones, or prompt and generated. */
  penaltyScope: z.enum(['generated', 'all']),
  /** 0 = off. */
  dryMultiplier: z.number().min(0),
  dryBase: z.number().min(0),
  dryAllowedLength: z.int().min(0),
  dryPenaltyLastN: z.int().min(-1),
  drySequenceBreakers: z.array(z.string()),
  /** Minimum number of tokens that truncation keeps; 0 = no minimum. */
  minKeep: z.int().min(0),
  /** [token id, bias added to its logit]; null forbids the token. */
  logitBias: z.array(z.tuple([z.int().min(0), z.number().nullable()])),
  /** Texts all of whose tokens get a bias; absent = none. */
  logitBiasTexts: z.array(z.tuple([z.string(), z.number().nullable()])).optional(),
  /** Only these ids may be sampled; null = all. */
  allowedTokenIds: z.array(z.int().min(0)).nullable(),
  /** Texts that must not be generated. */
  badWords: z.array(z.string()),
  /**
   * The same seed and request give the same draws; null = random. Draws are keyed by (seed, prompt, choice,
   * step). Texts are for integers of 64 bits that a double does not hold exactly.
   */
  seed: z.union([z.number(), z.string().regex(/^-?\d{1,19}$/)]).nullable(),
});

export type SamplingParameters = z.infer<typeof samplingParameters>;

/** Tokens to generate per choice; `end` = until the context ends. Bodies and the wire write −1 for it. */
export type TokenLimit = number | 'end';

export const tokenLimitOf = (tokens: number): TokenLimit => (tokens === -1 ? 'end' : tokens);

export const tokenLimitNumber = (limit: TokenLimit): number => (limit === 'end' ? -1 : limit);

/** Fields that can have a default of the model, for requests and dialects without a value. */
export const generationDefaults = samplingParameters
  .pick({ temperature: true, topK: true, topP: true, minP: true, repetitionPenalty: true })
  .extend({
    /** Tokens per choice; −1 = until the context ends. */
    maxTokens: z.int().min(-1),
  })
  .partial();

export type GenerationDefaults = z.infer<typeof generationDefaults>;

/** Samples from the model's own distribution: all processors off. */
export const NEUTRAL_SAMPLING: SamplingParameters = {
  temperature: 1,
  dynatempRange: 0,
  dynatempExponent: 1,
  topK: 0,
  topP: 1,
  minP: 0,
  typicalP: 1,
  topNSigma: -1,
  xtcProbability: 0,
  xtcThreshold: 0.1,
  mirostat: 0,
  mirostatTau: 5,
  mirostatEta: 0.1,
  repetitionPenalty: 1,
  frequencyPenalty: 0,
  presencePenalty: 0,
  repeatLastN: -1,
  penaltyScope: 'generated',
  dryMultiplier: 0,
  dryBase: 1.75,
  dryAllowedLength: 2,
  dryPenaltyLastN: -1,
  drySequenceBreakers: ['\n', ':', '"', '*'],
  minKeep: 0,
  logitBias: [],
  allowedTokenIds: null,
  badWords: [],
  seed: null,
};
