import * as z from 'zod';
import { DOCUMENTED_AS, decimal, integer, kindOf, list, report } from './json-fields.ts';

/** The public sampling fields: types and ranges. The dialect sets the defaults; the Worker resolves aliases. */

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
    // In the map form, errors name the key, not the position.
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

/** Returns the [id, bias] pairs of the map form; null if it is not a map. Invalid keys become NaN, which is rejected later. */
function mapEntries(value: unknown): [number, unknown][] | null {
  if (typeof value !== 'object' || value === null) return null;
  return Object.entries(value).map(([key, amount]) => [
    /^\d{1,10}$/.test(key) ? Number(key) : Number.NaN,
    amount,
  ]);
}

export const MAX_WORD_LENGTH = 4_096;
/** Total of all bad words. Other requests wait for their next token while the words are tokenized. */
const MAX_BAD_CHARACTERS = 16_384;

const lengthOf = (words: readonly string[]): number => words.reduce((sum, { length }) => sum + length, 0);

const badWords = list(z.string().min(1).max(MAX_WORD_LENGTH), { max: 1_024 }).refine(
  (words) => lengthOf(words) <= MAX_BAD_CHARACTERS,
  {
    error: ({ input }) =>
      `Invalid 'bad_words': too long. Expected at most ${MAX_BAD_CHARACTERS} characters in total, but got ${lengthOf(input as string[])} instead.`,
    params: { code: 'array_above_max_length' },
  },
);

export const samplingFields = {
  temperature: decimal(0, 2)
    .nullish()
    .describe('Softmax temperature. 0 always selects the most likely token.'),
  top_p: decimal(0, 1)
    .nullish()
    .describe('Nucleus sampling: keeps the most likely tokens up to this probability.'),
  top_k: integer(-1).nullish().describe('Keeps this number of most likely tokens. 0 or -1 keeps all.'),
  min_p: decimal(0, 1)
    .nullish()
    .describe('Keeps tokens with at least this share of the highest probability.'),
  typical_p: decimal(0, 1).nullish().describe('Locally typical sampling: probability mass to keep.'),
  typ_p: decimal(0, 1).nullish().describe('Alias of typical_p.'),
  top_n_sigma: z
    .number()
    .nullish()
    .describe(
      'Drops tokens whose logit is more than this number of standard deviations below the maximum. 0 or less = off.',
    ),
  xtc_probability: decimal(0, 1)
    .nullish()
    .describe('XTC: probability per token of excluding the top choices.'),
  xtc_threshold: decimal(0, 1)
    .nullish()
    .describe('XTC: minimum probability of a top choice that may be excluded.'),
  dynatemp_range: decimal(0)
    .nullish()
    .describe('Dynamic temperature: half of the temperature range. 0 = off.'),
  dynatemp_exponent: decimal(0)
    .nullish()
    .describe('Dynamic temperature: exponent of the normalized entropy.'),
  min_keep: integer(0).nullish().describe('Minimum number of tokens that truncation keeps.'),
  // The body's reader turns integers that a double does not hold exactly into bigints.
  seed: z
    .union([
      z
        .bigint()
        .min(-(2n ** 63n), 'integer')
        .max(2n ** 63n - 1n, 'integer'),
      z.int('integer'),
    ])
    // As a plain integer, JSON Schema would show the range in which doubles are exact.
    .meta({ [DOCUMENTED_AS]: z.number().meta({ type: 'integer', format: 'int64' }) })
    .nullish()
    .describe('The same seed, request and system_fingerprint give the same text. -1 = random.'),
  frequency_penalty: decimal(-2, 2)
    .nullish()
    .describe('Subtracted from the logit of a token for each time it was generated.'),
  presence_penalty: decimal(-2, 2)
    .nullish()
    .describe('Subtracted from the logit of every token that was generated.'),
  repetition_penalty: z
    .number()
    .gt(0, 'decimal')
    .max(2, 'decimal')
    .nullish()
    .describe('Divides positive and multiplies negative logits of tokens in prompt and completion. 1 = off.'),
  repeat_penalty: z
    .number()
    .gt(0, 'decimal')
    .max(2, 'decimal')
    .nullish()
    .describe('Alias of repetition_penalty.'),
  repeat_last_n: integer(-1)
    .nullish()
    .describe('Number of last tokens that the penalties count. -1 = all, 0 = penalties off.'),
  logit_bias: logitBias
    .nullish()
    .describe('Values added to the logits of token ids. false forbids the token.'),
  mirostat: integer(0, 2).nullish().describe('Mirostat version. 0 = off.'),
  mirostat_tau: decimal(0).nullish().describe('Mirostat: target surprise in bits.'),
  mirostat_target: decimal(0)
    .nullish()
    .describe('Alias of mirostat_tau. Without mirostat, it enables version 2.'),
  mirostat_eta: decimal(0, 1).nullish().describe('Mirostat: learning rate.'),
  mirostat_lr: decimal(0, 1)
    .nullish()
    .describe('Alias of mirostat_eta. Without mirostat, it enables version 2.'),
  dry_multiplier: decimal(0)
    .nullish()
    .describe('DRY: strength of the penalty for repeated sequences. 0 = off.'),
  dry_base: decimal(1).nullish().describe('DRY: growth of the penalty per repeated token.'),
  dry_allowed_length: integer(0).nullish().describe('DRY: length of repetitions without a penalty.'),
  dry_penalty_last_n: integer(-1)
    .nullish()
    .describe('DRY: number of last tokens that are searched. -1 = all.'),
  dry_sequence_breakers: list(z.string().min(1).max(40), { min: 1, max: 64 })
    .nullish()
    .describe('DRY: texts at which the search for repetitions starts anew.'),
  bad_words: badWords
    .nullish()
    .describe(`Texts that are never generated. At most ${MAX_BAD_CHARACTERS} characters in total.`),
  allowed_token_ids: list(integer(0), { min: 1, max: 524_288 })
    .nullish()
    .describe('The only token ids that may be generated.'),
  samplers: z
    .union([z.string().max(64), list(z.string().max(64), { max: 64 })])
    .nullish()
    .describe(
      "The samplers to use, by llama.cpp's names or letters. The settings of the others have no effect. The order is fixed.",
    ),
  use_beam_search: z.boolean().nullish().describe('Not supported: true is rejected.'),
} as const;
