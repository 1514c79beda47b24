import * as z from 'zod';
import { generationDefaults } from './sampling.ts';

/**
 * A request for a model that is not `loaded` gets 503. It starts the load of an `unloaded` model. After a
 * load that did not succeed, a model is `failed`. If its files cannot be read, it is `unavailable`, and its
 * numbers are 0.
 */
export const modelState = z.enum(['unloaded', 'loading', 'loaded', 'failed', 'unavailable']);
export type ModelState = z.infer<typeof modelState>;

/** How the graph of a model was made, if the origin's own builder made it. */
export const modelBuild = z.object({
  precision: z
    .string()
    .describe('Precision of the weights: fp32, fp16, bf16, int8, int8a8, int8f32, int4 or int4f32.'),
  parameters: z.int().describe('Number of parameters.'),
  source: z.string().describe('The published model, directory or file that the weights come from.'),
});
export type ModelBuild = z.infer<typeof modelBuild>;

/** A served model, in GET /models of the origin. */
export const originModel = z.object({
  id: z.string(),
  /** Unix seconds. */
  created: z.int(),
  /** Changes with everything that the output depends on; absent = not known. */
  fingerprint: z.string().max(64).optional(),
  contextLength: z.int(),
  vocabularySize: z.int(),
  /** True when the model has a fill-in-the-middle template. */
  infill: z.boolean(),
  /** Prompts can be healed; absent = no. */
  tokenHealing: z.boolean().optional(),
  /** Prompt tokens that one image counts as; absent when the model takes no images. */
  imageTokens: z.int().min(1).optional(),
  build: modelBuild.optional(),
  /** Further names of the model. */
  aliases: z.array(z.string()).default([]),
  /** The model's defaults for omitted fields. */
  defaults: generationDefaults.default({}),
  /** A state that this version does not know counts as `unavailable`. */
  state: modelState.default('loaded').catch('unavailable'),
  /** Why the model cannot be served, or why its last failed run failed; for operators, never for callers. */
  reason: z.string().optional(),
});
export type OriginModel = z.infer<typeof originModel>;

/** GET /health of the origin. */
export const originHealth = z.object({
  status: z.enum(['loading', 'ready', 'draining', 'unhealthy']),
  models: z.array(originModel),
  running: z.int(),
  waiting: z.int(),
});
export type OriginHealth = z.infer<typeof originHealth>;
