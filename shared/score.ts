import * as z from 'zod';
import { logprobsFormat } from './completion-output.ts';
import { emptyAsText, readTextOrIds } from './completion-prompt.ts';
import { completionUsage } from './completion-response.ts';
import {
  always,
  characters,
  flag,
  integer,
  kindOf,
  optional,
  type ReadResult,
  required,
} from './json-fields.ts';

/** The bodies of POST /v1/score: the likelihoods of continuations of a prompt. */

/** Maximum number of continuations in one request. */
export const MAX_CONTINUATIONS = 256;

export type TextOrIds = string | number[];

export const ids = z.array(integer(0)).min(1);

/** A text or a list of token ids. */
export const textOrIds = (field: string) =>
  required(field, z.union([z.string(), ids]), (value) => readTextOrIds(value, field));

/** Reads a list of texts, or of lists of token ids. Checks it in one pass, up to the first fault. */
export function readTextsOrIds(value: unknown, field: string): ReadResult<TextOrIds[]> {
  if (!Array.isArray(value)) {
    const message = `Invalid type for '${field}': expected an array of strings or of arrays of token ids, but got ${kindOf(value)} instead.`;
    return { fault: { code: 'invalid_type', message } };
  }
  if (value.length === 0) {
    const message = `Invalid '${field}': empty array. Expected at least one element.`;
    return { fault: { code: 'empty_array', message } };
  }
  if (value.length > MAX_CONTINUATIONS) {
    const message = `Invalid '${field}': array too long. Expected an array with maximum length ${MAX_CONTINUATIONS}, but got an array with length ${value.length} instead.`;
    return { fault: { code: 'array_above_max_length', message } };
  }
  const read: TextOrIds[] = [];
  for (const [index, element] of value.entries()) {
    const text = readTextOrIds(element, field, [index]);
    if ('fault' in text) return text;
    if (typeof text.value !== typeof (read[0] ?? text.value)) {
      const message = `Invalid type for '${field}[${index}]': expected the type of '${field}[0]', because all are texts or all are lists of token ids.`;
      return { fault: { code: 'invalid_type', message, path: [index] } };
    }
    read.push(text.value);
  }
  return { value: read };
}

function readContinuations(value: unknown): ReadResult<TextOrIds[]> {
  const result = readTextsOrIds(value, 'continuations');
  const empty = 'value' in result ? result.value.indexOf('') : -1;
  if (empty < 0) return result;
  const message = `Invalid 'continuations[${empty}]': empty string. Expected a string with minimum length 1.`;
  return { fault: { code: 'empty_string', message, path: [empty] } };
}

const continuations = z
  .array(z.union([z.string().min(1), ids]))
  .min(1)
  .max(MAX_CONTINUATIONS);

const model = z
  .string()
  .min(1)
  .max(256)
  .describe("Model id. 'default' selects the only served model. Some dialects do not require it.");

/** Fields of all scoring requests. */
export const commonFields = {
  model,
  add_special_tokens: flag(
    "Adds the tokenizer's own special tokens to a text that begins a prompt. Default: true.",
  ),
  parse_special: flag('false takes the spelling of special tokens in the texts as text. Default: true.'),
  cache_prompt: flag('Allows reuse of the prefix cache of earlier prompts.'),
  prompt_cache_key: optional(characters(256), 'Prompts with different keys share no prefix cache.'),
  user: optional(characters(256), 'Name of the end user. Only a hash of it is logged.'),
} as const;

export const scoreRequest = z.object({
  ...commonFields,
  prompt: z
    .preprocess(emptyAsText, textOrIds('prompt'))
    .describe(
      'The text before the continuations, as a string or as token ids. If it is empty, they begin a new document.',
    ),
  continuations: required('continuations', continuations, readContinuations).describe(
    'The texts to score, all as strings or all as lists of token ids.',
  ),
  tokenization: optional(
    z.enum(['joint', 'separate']),
    'joint, the default: each continuation is encoded together with the prompt, and split where the tokens of the prompt alone end. separate: alone.',
  ),
  token_logprobs: flag('Adds the tokens and their logprobs. Default: false.'),
  logprobs_format: optional(
    logprobsFormat,
    'Adds the logprobs of the whole vocabulary, or of the most likely tokens, for each token.',
  ),
});
export type ScoreRequest = z.output<typeof scoreRequest>;

const score = z.object({
  index: z.int().min(0).describe('Number of the continuation in the request.'),
  object: always('score'),
  logprob: z
    .number()
    .describe('Sum of the logprobs of its tokens: the natural logarithm of its probability.'),
  is_greedy: z.boolean().describe('Whether temperature 0 would generate exactly these tokens.'),
  token_count: z.int().min(1).describe('Number of its tokens.'),
  byte_count: z.int().min(0).describe('Length of the continuation in UTF-8 bytes.'),
  tokens: z.array(z.string()).optional().describe('Its tokens as texts, if requested.'),
  token_logprobs: z.array(z.number()).optional().describe('The logprob of each token, if requested.'),
  rows: z
    .array(z.string())
    .optional()
    .describe('The rows of logprobs of each token, as in completions, if logprobs_format is set.'),
  row_ids: z.array(z.string()).optional().describe('The ids of rows, if logprobs_format.top_p is set.'),
});

export const scoreEnvelope = {
  created: z.int().describe('Start of the request in Unix seconds.'),
  model: z.string().describe('The model as the request names it.'),
  usage: completionUsage.describe('Token usage. The shared text counts once per scored one.'),
};

/** Ids of scores begin with `prefix`. */
export const scoreId = (prefix: string) =>
  z
    .string()
    .regex(new RegExp(`^${prefix}-[0-9a-f]{32}$`))
    .describe('Id of the answer.');

export const scoreResponse = z.object({
  id: scoreId('score'),
  ...scoreEnvelope,
  object: always('list'),
  data: z.array(score).describe('One score per continuation, in their order.'),
});

/** White space as Python's `str.rstrip` removes it. `\s` lacks some of it, and has U+FEFF in addition. */
const isSpace = (unit: number): boolean =>
  (unit >= 0x1c && unit <= 0x1f) ||
  unit === 0x85 ||
  (unit !== 0xfeff && /\s/.test(String.fromCharCode(unit)));

/**
 * Returns a text without the white space at its end. With joint tokenization, that space belongs to the
 * continuation: most tokenizers join a space to the word after it.
 */
export function withoutTrailingSpace(text: string): string {
  let end = text.length;
  while (end > 0 && isSpace(text.charCodeAt(end - 1))) end -= 1;
  return text.slice(0, end);
}
