import * as z from 'zod';
import {
  characters,
  DOCUMENTED_AS,
  decimal,
  flag,
  integer,
  kindOf,
  list,
  optional,
  report,
} from './json-fields.ts';

/** Public sampling fields: types and ranges. The dialect sets the defaults; the Worker resolves aliases. */

/** What a logit is raised by: of a token id, or of all tokens of a text. `null` forbids the tokens. */
type Bias = [idOrText: number | string, amount: number | null];

const MAX_BIASES = 8_192;

/** @param texts whether texts may be given in place of token ids */
export function logitBias({ largest, texts }: { readonly largest: number; readonly texts: boolean }) {
  const bias = z.union([decimal(-largest, largest), z.literal(false)]);
  const pair = z.tuple([texts ? z.union([integer(0), z.string()]) : integer(0), bias]);
  const pairs = list(pair, { max: MAX_BIASES });
  const map = z.record(texts ? z.string() : z.string().regex(/^\d{1,10}$/), bias);
  return z
    .unknown()
    .transform((value, context): Bias[] => {
      const entries = Array.isArray(value) ? value : mapEntries(value, texts);
      if (entries === null) {
        const message = `Invalid type for 'logit_bias': expected an object or an array of [token id, bias] pairs, but got ${kindOf(value)} instead.`;
        report(context, { code: 'invalid_type', message });
        return z.NEVER;
      }
      const parsed = pairs.safeParse(entries, { reportInput: true });
      if (!parsed.success) {
        reportBias(context, value, parsed.error.issues[0]);
        return z.NEVER;
      }
      const biases = parsed.data.map(([token, amount]): Bias => [token, amount === false ? null : amount]);
      const length = lengthOf(biases.flatMap(([token]) => (typeof token === 'string' ? [token] : [])));
      if (length <= MAX_ENCODED_CHARACTERS) return biases;
      const message = `Invalid 'logit_bias': too long. Expected texts of at most ${MAX_ENCODED_CHARACTERS} characters in total, but got ${length} instead.`;
      report(context, { code: 'array_above_max_length', message });
      return z.NEVER;
    })
    .meta({ [DOCUMENTED_AS]: z.union([map, z.array(pair).max(MAX_BIASES)]) });
}

/** Reports what is wrong with a bias. In the map form, errors name the key, not the position. */
function reportBias(context: z.RefinementCtx, value: unknown, issue: z.core.$ZodIssue | undefined): void {
  const [index, part] = issue?.path ?? [];
  const path =
    Array.isArray(value) || typeof index !== 'number' ? (issue?.path ?? []) : [String(mapKeys(value)[index])];
  if (!Array.isArray(value) && part === 0) {
    const message = `Invalid 'logit_bias': '${String(mapKeys(value)[index as number]).slice(0, 40)}' is not a token id.`;
    report(context, { code: 'invalid_value', message, path: path as string[] });
  } else if (issue) {
    context.issues.push({ ...issue, path } as unknown as z.core.$ZodRawIssue);
  }
}

const mapKeys = (value: unknown): string[] => Object.keys(value as object);

/**
 * Returns the pairs of the map form; null if it is not a map. Without texts, other keys than ids become NaN,
 * which is refused later.
 */
function mapEntries(value: unknown, texts: boolean): [number | string, unknown][] | null {
  if (typeof value !== 'object' || value === null) return null;
  return Object.entries(value).map(([key, amount]) => [
    /^\d{1,10}$/.test(key) ? Number(key) : texts ? key : Number.NaN,
    amount,
  ]);
}

export const MAX_WORD_LENGTH = 4_096;
/** Total of the texts of one field that are tokenized one by one. */
const MAX_ENCODED_CHARACTERS = 16_384;

const lengthOf = (words: readonly string[]): number => words.reduce((sum, { length }) => sum + length, 0);

const badWords = list(characters(MAX_WORD_LENGTH, z.string().min(1)), { max: 1_024 }).refine(
  (words) => lengthOf(words) <= MAX_ENCODED_CHARACTERS,
  {
    error: ({ input }) =>
      `Invalid 'bad_words': too long. Expected at most ${MAX_ENCODED_CHARACTERS} characters in total, but got ${lengthOf(input as string[])} instead.`,
    params: { code: 'array_above_max_length' },
  },
);

/** The body's reader turns integers that a double does not hold exactly into bigints. */
const seed = z
  .union([
    z
      .bigint()
      .min(-(2n ** 63n), 'integer')
      .max(2n ** 63n - 1n, 'integer'),
    z.int('integer'),
  ])
  // As a plain integer, JSON Schema would show the range in which doubles are exact.
  .meta({ [DOCUMENTED_AS]: z.number().meta({ type: 'integer', format: 'int64' }) });

const breakerList = list(characters(40, z.string().min(1)), { max: 64 });

/** text-generation-webui documents JSON strings with commas between them; its clients also send brackets. */
const breakers = z
  .union([
    breakerList,
    z
      .string()
      .transform((text, context): unknown => {
        try {
          return JSON.parse(text.trimStart().startsWith('[') ? text : `[${text}]`);
        } catch {
          const message =
            "Invalid 'dry_sequence_breakers': expected an array of strings, or the JSON text of one, but the text is not valid JSON.";
          report(context, { code: 'invalid_value', message });
          return z.NEVER;
        }
      })
      .pipe(breakerList),
  ])
  .meta({ [DOCUMENTED_AS]: z.union([z.array(characters(40, z.string().min(1))).max(64), z.string()]) });

const repetitionPenalty = z.number().gt(0, 'decimal').max(2, 'decimal');

export const samplingFields = {
  temperature: optional(decimal(0, 2), 'Softmax temperature. 0 always selects the most likely token.'),
  top_p: optional(decimal(0, 1), 'Nucleus sampling: keeps the most likely tokens up to this probability.'),
  top_k: optional(integer(-1), 'Keeps this number of most likely tokens. 0 or -1 keeps all.'),
  min_p: optional(decimal(0, 1), 'Keeps tokens with at least this share of the highest probability.'),
  typical_p: optional(decimal(0, 1), 'Locally typical sampling: probability mass to keep.'),
  typ_p: optional(decimal(0, 1), 'Alias of typical_p.'),
  top_n_sigma: optional(
    z.number(),
    'Drops tokens whose logit is more than this number of standard deviations below the maximum. 0 or less = off.',
  ),
  xtc_probability: optional(decimal(0, 1), 'XTC: probability per token of excluding the top choices.'),
  xtc_threshold: optional(decimal(0, 1), 'XTC: minimum probability of a top choice that may be excluded.'),
  dynatemp_range: optional(decimal(0), 'Dynamic temperature: half of the temperature range. 0 = off.'),
  dynatemp_exponent: optional(decimal(0), 'Dynamic temperature: exponent of the normalized entropy.'),
  min_keep: optional(integer(0), 'Minimum number of tokens that truncation keeps.'),
  seed: optional(seed, 'The same seed, request and system_fingerprint give the same text. -1 = random.'),
  frequency_penalty: optional(
    decimal(-2, 2),
    'Subtracted from the logit of a token for each time it was generated.',
  ),
  presence_penalty: optional(decimal(-2, 2), 'Subtracted from the logit of every token that was generated.'),
  repetition_penalty: optional(
    repetitionPenalty,
    'Divides positive and multiplies negative logits of tokens in prompt and completion. 1 = off.',
  ),
  repeat_penalty: optional(repetitionPenalty, 'Alias of repetition_penalty.'),
  repeat_last_n: optional(
    integer(-1),
    'Number of last tokens that the penalties count. -1 = all, 0 = penalties off.',
  ),
  logit_bias: optional(
    logitBias({ largest: 100, texts: false }),
    'Values added to the logits of token ids. false forbids the token.',
  ),
  mirostat: optional(integer(0, 2), 'Mirostat version. 0 = off.'),
  mirostat_tau: optional(decimal(0), 'Mirostat: target surprise in bits.'),
  mirostat_target: optional(decimal(0), 'Alias of mirostat_tau. Without mirostat, it enables version 2.'),
  mirostat_eta: optional(decimal(0, 1), 'Mirostat: learning rate.'),
  mirostat_lr: optional(decimal(0, 1), 'Alias of mirostat_eta. Without mirostat, it enables version 2.'),
  dry_multiplier: optional(decimal(0), 'DRY: strength of the penalty for repeated sequences. 0 = off.'),
  dry_base: optional(decimal(1), 'DRY: growth of the penalty per repeated token.'),
  dry_allowed_length: optional(integer(0), 'DRY: length of repetitions without a penalty.'),
  dry_penalty_last_n: optional(integer(-1), 'DRY: number of last tokens that are searched. -1 = all.'),
  dry_sequence_breakers: optional(
    breakers,
    'DRY: texts at which the search for repetitions starts anew, as an array or as its JSON text. An empty array means none.',
  ),
  bad_words: optional(
    badWords,
    `Texts that are never generated. At most ${MAX_ENCODED_CHARACTERS} characters in total.`,
  ),
  allowed_token_ids: optional(
    list(integer(0), { min: 1, max: 524_288 }),
    'The only token ids that may be generated.',
  ),
  samplers: optional(
    z.union([characters(64), list(characters(64), { max: 64 })]),
    "The samplers to use, by llama.cpp's names or letters. The settings of the others have no effect. The order is fixed.",
  ),
  use_beam_search: flag('Not supported: true is rejected.'),
} as const;
