import * as z from 'zod';
import { completionRequest } from './completion.ts';
import { logitBias, MAX_WORD_LENGTH } from './completion-sampling.ts';
import { characters, decimal, integer, list, MAX_INT32, optional } from './json-fields.ts';

/** The fields that llama.cpp's server reads with ranges of its own. Source: its document. */

/** llama.cpp has no bound. Beyond this one, no value changes a text in another way. */
const LARGEST = 1e9;

/** llama.cpp moves some values into their range. */
const movedInto = (min: number, max: number) =>
  z.number().transform((value) => Math.min(max, Math.max(min, value)));

const any = () => decimal(-LARGEST, LARGEST);
const repetitionPenalty = () => z.number().gt(0, 'decimal').max(LARGEST, 'decimal');

const MAX_STOPS = 256;
const MAX_STOP_CHARACTERS = 131_072;

const stopText = characters(MAX_WORD_LENGTH);

/** Empty texts count as absent. */
const stops = list(stopText, { max: MAX_STOPS }).refine(
  (texts) => texts.join('').length <= MAX_STOP_CHARACTERS,
  {
    error: `Invalid 'stop': too long. Expected at most ${MAX_STOP_CHARACTERS} characters in total.`,
    params: { code: 'array_above_max_length' },
  },
);

/** The default of llama.cpp's server for DRY's base, and what it reads in place of one below 1. */
const DRY_BASE = 1.75;

const descriptionOf = (name: keyof typeof completionRequest.shape): string =>
  completionRequest.shape[name].description ?? '';

const ranges = {
  temperature: any().transform((value) => Math.max(0, value)),
  top_k: integer(-MAX_INT32),
  top_p: movedInto(0, 1),
  min_p: movedInto(0, 1),
  xtc_probability: movedInto(0, 1),
  xtc_threshold: movedInto(0, 1),
  repetition_penalty: repetitionPenalty(),
  repeat_penalty: repetitionPenalty(),
  frequency_penalty: any(),
  presence_penalty: any(),
  dry_base: any().transform((value) => (value < 1 ? DRY_BASE : value)),
  logit_bias: logitBias({ largest: LARGEST, texts: true }),
  stop: z.union([stopText.min(1), stops.transform((texts) => texts.filter((text) => text !== ''))]),
};

const described = Object.fromEntries(
  Object.entries(ranges).map(([name, field]) => [
    name,
    optional(field, descriptionOf(name as keyof typeof ranges)),
  ]),
) as { [Name in keyof typeof ranges]: z.ZodOptional<z.ZodNullable<(typeof ranges)[Name]>> };

/** The body of a completion in the dialect of llama.cpp, and at its addresses. */
export const llamaCppRequest = completionRequest.extend(described);
