import * as z from 'zod';
import { DOCUMENTED_AS, decimal, integer, kindOf, list, report } from './json-fields.ts';

/** The public sampling fields: types and ranges. Defaults belong to the dialect, aliases to the Worker. */

const bias = z.union([decimal(-100, 100), z.literal(false)]);
const MAX_BIASES = 8_192;
const biasPairs = list(z.tuple([integer(0), bias]), { max: MAX_BIASES });
const biasMap = z.record(z.string().regex(/^\d{1,10}$/), bias);

const logitBias = z
  .unknown()
  .transform((value, context): [number, number | null][] => {
    const entries = Array.isArray(value) ? value : mapEntries(value);
    if (entries === null) {
      const message = `Invalid type for 'logit_bias': expected an object or an array of [token id, bias] pairs, but got ${kindOf(value)} instead.`;
      report(context, { code: 'invalid_type', message });
      return z.NEVER;
    }
    const parsed = biasPairs.safeParse(entries, { reportInput: true });
    if (parsed.success) return parsed.data.map(([id, amount]) => [id, amount === false ? null : amount]);
    const [issue] = parsed.error.issues;
    const [index, part] = issue?.path ?? [];
    // Callers of the map form know their keys, not positions.
    const path =
      Array.isArray(value) || typeof index !== 'number'
        ? (issue?.path ?? [])
        : [String(mapKeys(value)[index])];
    if (!Array.isArray(value) && part === 0) {
      const message = `Invalid 'logit_bias': '${String(mapKeys(value)[index as number]).slice(0, 40)}' is not a token id.`;
      report(context, { code: 'invalid_value', message, path: path as string[] });
    } else if (issue) {
      context.issues.push({ ...issue, path } as unknown as z.core.$ZodRawIssue);
    }
    return z.NEVER;
  })
  .meta({ [DOCUMENTED_AS]: z.union([biasMap, z.array(z.tuple([integer(0), bias])).max(MAX_BIASES)]) });

const mapKeys = (value: unknown): string[] => Object.keys(value as object);

/** [id, bias] pairs of the map form; null when it is no map. A key that is no id becomes NaN and is refused as such. */
function mapEntries(value: unknown): [number, unknown][] | null {
  if (typeof value !== 'object' || value === null) return null;
  return Object.entries(value).map(([key, amount]) => [
    /^\d{1,10}$/.test(key) ? Number(key) : Number.NaN,
    amount,
  ]);
}

export const MAX_WORD_LENGTH = 4_096;
/** Of all bad words together: they are tokenised while other requests wait for their next token. */
const MAX_BAD_CHARACTERS = 16_384;

const lengthOf = (words: readonly string[]): number => words.reduce((sum, { length }) => sum + length, 0);

const badWords = list(z.string().min(1).max(MAX_WORD_LENGTH), { max: 1_024 }).refine(
  (words) => lengthOf(words) <= MAX_BAD_CHARACTERS,
  {
    error: ({ input }) =>
      `Invalid 'bad_words': too long. Expected at most ${MAX_BAD_CHARACTERS} characters in all, but got ${lengthOf(input as string[])} instead.`,
    params: { code: 'array_above_max_length' },
  },
);

export const samplingFields = {
  temperature: decimal(0, 2).nullish(),
  top_p: decimal(0, 1).nullish(),
  top_k: integer(-1).nullish(),
  min_p: decimal(0, 1).nullish(),
  typical_p: decimal(0, 1).nullish(),
  typ_p: decimal(0, 1).nullish(),
  top_n_sigma: z.number().nullish(),
  xtc_probability: decimal(0, 1).nullish(),
  xtc_threshold: decimal(0, 1).nullish(),
  dynatemp_range: decimal(0).nullish(),
  dynatemp_exponent: decimal(0).nullish(),
  min_keep: integer(0).nullish(),
  seed: z
    .number('integer')
    .min(-(2 ** 63), 'integer')
    .max(2 ** 63, 'integer')
    .refine(Number.isInteger, { error: 'integer' })
    // A plain integer would be documented as ending where doubles are exact.
    .meta({ [DOCUMENTED_AS]: z.int().meta({ minimum: -(2 ** 63), maximum: 2 ** 63 }) })
    .nullish(),
  frequency_penalty: decimal(-2, 2).nullish(),
  presence_penalty: decimal(-2, 2).nullish(),
  repetition_penalty: z.number().gt(0, 'decimal').max(2, 'decimal').nullish(),
  repeat_penalty: z.number().gt(0, 'decimal').max(2, 'decimal').nullish(),
  repeat_last_n: integer(-1).nullish(),
  logit_bias: logitBias.nullish(),
  mirostat: integer(0, 2).nullish(),
  mirostat_tau: decimal(0).nullish(),
  mirostat_target: decimal(0).nullish(),
  mirostat_eta: decimal(0, 1).nullish(),
  mirostat_lr: decimal(0, 1).nullish(),
  dry_multiplier: decimal(0).nullish(),
  dry_base: decimal(1).nullish(),
  dry_allowed_length: integer(0).nullish(),
  dry_penalty_last_n: integer(-1).nullish(),
  dry_sequence_breakers: list(z.string().min(1).max(40), { min: 1, max: 64 }).nullish(),
  bad_words: badWords.nullish(),
  allowed_token_ids: list(integer(0), { min: 1, max: 524_288 }).nullish(),
  use_beam_search: z.boolean().nullish(),
} as const;
