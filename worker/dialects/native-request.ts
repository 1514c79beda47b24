import { llamaCppRequest } from '@continuo/shared/completion-llamacpp.ts';
import { documented } from '@continuo/shared/documented.ts';
import { ApiError } from '@continuo/shared/errors.ts';
import { characters, list, optional } from '@continuo/shared/json-fields.ts';
import type { GenerationDefaults } from '@continuo/shared/sampling.ts';
import * as z from 'zod';
import { DIALECTS } from './dialect.ts';
import { parseRequest } from './parse-request.ts';
import type { ParsedCompletion } from './parsed-completion.ts';
import { parseCompletion, type RequestBounds } from './request.ts';

/** The requests of llama.cpp's own API. They have the fields of the dialect `llamacpp`, and those below. */

type Body = Readonly<Record<string, unknown>>;

/** Fields without a place in the native response. llama.cpp ignores them. */
const WITHOUT_EFFECT = [
  'echo',
  'echo_last',
  'prompt_logprobs',
  'logprobs_format',
  'best_of',
  'stream_options',
] as const;

const omitted = Object.fromEntries(WITHOUT_EFFECT.map((name) => [name, true])) as Record<
  (typeof WITHOUT_EFFECT)[number],
  true
>;

const responseFields = optional(
  list(characters(256), { max: 256 }),
  "Members of the response to return, such as 'content' and 'timings/prompt_n'. If absent, all.",
);

/** The body of POST /completion. */
export const nativeRequest = llamaCppRequest
  .partial({ model: true })
  .omit(omitted)
  .extend({ response_fields: responseFields })
  .register(documented, {
    name: 'NativeCompletionRequest',
    examples: { plain: { prompt: 'Once upon a time', n_predict: 30, n_probs: 1 } },
  });

const file = z.object({
  filename: optional(characters(4_096), 'Path of the file.'),
  text: z.string().describe('Text of the file, or a part of it.'),
});

const infillFields = {
  input_prefix: z.string().describe('Text before the gap.'),
  input_suffix: z.string().describe('Text after the gap.'),
  input_extra: optional(
    list(file, { max: 1_024 }),
    'Other files of the project. If not all fit in the context, the first ones are left out.',
  ),
  prompt: optional(z.string(), 'Start of the text to generate. It is not repeated in the response.'),
};

/** The body of POST /infill. */
export const infillRequest = nativeRequest
  .omit({ prompt: true, suffix: true })
  .extend(infillFields)
  .register(documented, {
    name: 'InfillRequest',
    examples: {
      editor: {
        input_prefix: 'def add(a, b):\n',
        input_suffix: '\n\nprint(add(1, 2))\n',
        input_extra: [{ filename: 'mul.py', text: 'def mul(a, b):\n    return a * b\n' }],
        prompt: '    return ',
        n_predict: 32,
        t_max_predict_ms: 1_000,
      },
    },
  });

const infillParts = z.object(infillFields);

/** The name of a file without one, as in llama.cpp. */
const UNNAMED = 'tmp';

const without = (body: Body, names: readonly string[]): Body =>
  Object.fromEntries(Object.entries(body).filter(([name]) => !names.includes(name)));

/** The form of a native response. */
export interface NativeOptions {
  /** Number of tokens in `completion_probabilities` at each position; null = absent. */
  readonly probabilities: number | null;
  /** Paths of the members to return, such as `timings/prompt_n`; empty = all. */
  readonly responseFields: readonly string[];
}

interface ParsedNative {
  readonly parsed: ParsedCompletion;
  readonly options: NativeOptions;
}

function asNative(parsed: ParsedCompletion, body: Body): ParsedNative {
  const fields = parseRequest(z.object({ response_fields: responseFields }), body).response_fields ?? [];
  const options = { probabilities: parsed.response.logprobs, responseFields: fields };
  return { parsed: { ...parsed, response: { ...parsed.response, logprobs: null } }, options };
}

/**
 * Parses the body of POST /completion.
 * @throws ApiError 400 for the first invalid field
 */
export function parseNative(body: Body, bounds: RequestBounds, defaults?: GenerationDefaults): ParsedNative {
  const rest = without(body, [...WITHOUT_EFFECT, 'response_fields']);
  return asNative(parseCompletion(rest, DIALECTS.llamacpp, bounds, defaults), body);
}

/** What POST /infill calls the fields `prompt` and `suffix`. */
const INFILL_NAMES: Readonly<Record<string, string>> = { prompt: 'input_prefix', suffix: 'input_suffix' };

/** Converts an error about a completion with a suffix to the field names of POST /infill. */
function withInfillNames(error: ApiError): ApiError {
  const { param } = error;
  const name = INFILL_NAMES[param ?? ''] ?? param;
  const message = error.message.replace(/'(prompt|suffix)'/g, (_, field) => `'${INFILL_NAMES[field]}'`);
  return name === null ? error : error.renamed(name, message);
}

/**
 * Parses the body of POST /infill.
 * @throws ApiError 400 for the first invalid field
 */
export function parseInfill(body: Body, bounds: RequestBounds, defaults?: GenerationDefaults): ParsedNative {
  const given = Object.keys(infillFields).map((name) => [name, body[name] ?? undefined]);
  const parts = parseRequest(infillParts, Object.fromEntries(given));
  const files = (parts.input_extra ?? []).map(({ filename, text }) => ({ name: filename ?? UNNAMED, text }));
  const rest = without(body, [...WITHOUT_EFFECT, 'response_fields', ...Object.keys(infillFields)]);
  const plain = { ...rest, prompt: parts.input_prefix, suffix: parts.input_suffix };
  const infill = { middle: parts.prompt ?? '', files };
  try {
    const { parsed, options } = asNative(
      parseCompletion(plain, DIALECTS.llamacpp, bounds, defaults, infill),
      body,
    );
    return { parsed: { ...parsed, rename: withInfillNames }, options };
  } catch (thrown) {
    throw thrown instanceof ApiError ? withInfillNames(thrown) : thrown;
  }
}
