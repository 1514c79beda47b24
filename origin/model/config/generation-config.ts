import { toCamelCase } from '@continuo/shared/field-names.ts';
import { type GenerationDefaults, generationDefaults } from '@continuo/shared/sampling.ts';
import * as z from 'zod';
import { type ModelTexts, readModelJson } from './model-json.ts';

/** Reads the sampling defaults of generation_config.json. */

const { maxTokens, temperature, topK, topP, minP, repetitionPenalty } = generationDefaults.shape;

const schema = z.object({
  do_sample: z.boolean().nullish(),
  temperature: temperature.nullable(),
  top_k: topK.nullable(),
  top_p: topP.nullable(),
  min_p: minP.nullable(),
  repetition_penalty: repetitionPenalty.nullable(),
  max_new_tokens: maxTokens.nullable(),
});

/**
 * Returns an empty object if the directory has no such file. `do_sample: false` means greedy.
 * @throws ModelError
 */
export function readGenerationDefaults(texts: ModelTexts): GenerationDefaults {
  const config = readModelJson(texts, 'generation_config.json', schema) ?? {};
  const { do_sample: draws, max_new_tokens: maxTokens, ...sampling } = config;
  const settings = { ...toCamelCase(sampling), maxTokens, ...(draws === false && { temperature: 0 }) };
  return Object.fromEntries(Object.entries(settings).filter(([, value]) => (value ?? null) !== null));
}
