import { ApiError, contextExceeded, requiredTokens } from '@continuo/shared/errors.ts';
import type { GenerationRequest, WirePrompt } from '@continuo/shared/generation.ts';
import { BODY_FIELDS, type BodyOptions, CONSTRAINT_FIELD, echoesLogprobs, OPEN } from './openai-fields.ts';

/** Writes a GenerationRequest as the body of POST /completions of an OpenAI-compatible server. */

type Fields = Record<string, unknown>;

export const unsupported = (param: string, what: string): ApiError =>
  new ApiError('unsupported_parameter', `Unsupported parameter: this model's server cannot ${what}.`, {
    param,
  });

/** Rejects what a server cannot tell about a prompt. */
function checkPromptLogprobs(request: GenerationRequest, { shown }: BodyOptions): void {
  if (request.promptTopLogprobs === null) return;
  if (shown.echo && shown.echoLast !== null)
    throw unsupported('echo_last', 'show the last tokens of a prompt');
  if (request.promptLogprobStart !== undefined)
    throw unsupported('prompt_logprob_start', 'leave out logprobs of a prompt');
  if (!echoesLogprobs(request, shown)) return;
  if (shown.promptLogprobs !== null)
    throw unsupported(
      'prompt_logprobs',
      "score a prompt twice; send 'echo' with 'logprobs' in another request",
    );
  if (request.scores) throw unsupported('best_of', 'rank choices with the logprobs of the prompt');
}

/** Rejects what needs the server's tokenizer. @throws ApiError 400 */
function checkSupported(request: GenerationRequest, options: BodyOptions): void {
  const { tokensAsIds, shown, flavor } = options;
  checkPromptLogprobs(request, options);
  if (request.addSpecialTokens === 'always') {
    throw unsupported('add_special_tokens', 'add special tokens always; use true or false');
  }
  if (request.sampling.logitBiasTexts) throw unsupported('logit_bias', 'bias texts; send token ids');
  if (request.logprobRows) throw unsupported('logprobs_format', 'return rows of logprobs');
  if (request.tokenIds) throw unsupported('return_token_ids', 'show token ids');
  if (tokensAsIds && request.topLogprobs !== null) {
    throw unsupported('return_tokens_as_token_ids', 'name tokens by their ids');
  }
  if (request.echo && request.truncatePromptTokens !== null) {
    throw unsupported('echo', 'show what is left of a prompt that is cut');
  }
  const isPlain = request.topLogprobs === null && request.prompts.length * request.choices === 1;
  // LiteLLM's streams have neither logprobs nor the numbers of choices.
  if (request.stream && flavor === 'litellm' && !isPlain) {
    const [field, what] = request.topLogprobs === null ? ['n', 'choices'] : ['logprobs', 'logprobs'];
    throw unsupported(request.prompts.length > 1 ? 'prompt' : field!, `stream ${what}; send 'stream': false`);
  }
  if (
    request.echo &&
    !echoesLogprobs(request, shown) &&
    request.prompts.some((prompt) => typeof prompt !== 'string')
  ) {
    throw unsupported('echo', 'show a prompt given as token ids');
  }
}

/**
 * Rejects token ids that do not fit, because their number is exact. The server checks the length of texts.
 * @throws ApiError 400 context_length_exceeded
 */
function checkLength(
  { prompts, maxTokens, contextOverflow, truncatePromptTokens }: GenerationRequest,
  { contextLength }: BodyOptions,
): void {
  if (truncatePromptTokens !== null) return;
  for (const [index, ids] of prompts.entries()) {
    if (!Array.isArray(ids) || ids.some((part) => typeof part === 'string')) continue;
    const required = requiredTokens(maxTokens);
    const needed = contextOverflow === 'error' ? required : Math.min(1, required);
    const param = prompts.length === 1 ? 'prompt' : `prompt[${index}]`;
    if (ids.length + needed > contextLength)
      throw contextExceeded(contextLength, ids.length, maxTokens, param);
  }
}

/**
 * Returns the prompts of a completion with a suffix: the other files of an infill, the prompt, and the start
 * of the text to generate. The server's own template marks no files, and nothing behind the middle marker.
 */
function promptsOf({ prompts, infill }: GenerationRequest): WirePrompt[] {
  if (infill === undefined) return prompts;
  const files = infill.files.map(({ text }) => (text.endsWith('\n') ? text : `${text}\n`)).join('');
  return prompts.map((prompt) =>
    typeof prompt === 'string' ? files + prompt + infill.middle : [files, ...prompt, infill.middle],
  );
}

/** Returns the client's own fields that the server may have. */
const clientFields = ({ extra, flavor }: BodyOptions): Fields =>
  Object.fromEntries(
    Object.entries(extra).filter(
      ([name]) => OPEN.includes(flavor) || BODY_FIELDS.get(name)?.servers.includes(flavor),
    ),
  );

/** Refuses a field that the server lacks under all of its names. @throws ApiError 400 */
function refuseMissing(name: string, body: Fields): void {
  const setting = BODY_FIELDS.get(name)?.synonymOf ?? name;
  const isSent = [...BODY_FIELDS].some(
    ([field, { synonymOf }]) => Object.hasOwn(body, field) && (field === setting || synonymOf === setting),
  );
  if (isSent) return;
  throw unsupported(setting, setting === CONSTRAINT_FIELD ? 'follow this constraint' : `use '${setting}'`);
}

/**
 * LiteLLM passes unknown fields on to the OpenAI library, which refuses them. Inside of `extra_body`, the
 * server behind it gets them.
 */
function wrapped(body: Fields): Fields {
  const isWrapped = ([name]: [string, unknown]) => BODY_FIELDS.get(name)?.wrapped === true;
  const entries = Object.entries(body);
  const inner = entries.filter(isWrapped);
  if (inner.length === 0) return body;
  const outer = entries.filter((entry) => !isWrapped(entry));
  return { ...Object.fromEntries(outer), extra_body: Object.fromEntries(inner) };
}

/**
 * @param options its extra fields are sent as they are, unless the request sets the same field
 * @throws ApiError 400 for what such a server cannot do
 */
export function openAiBody(generation: GenerationRequest, options: BodyOptions): Fields {
  const request = { ...generation, prompts: promptsOf(generation) };
  checkSupported(request, options);
  checkLength(request, options);
  const body = clientFields(options);
  const missing: string[] = [];
  for (const [name, { servers, value, elsewhere }] of BODY_FIELDS) {
    const sent = value?.(request, options) ?? null;
    if (sent === null) continue;
    if (servers.includes(options.flavor)) body[name] = sent;
    else if (elsewhere === undefined || (elsewhere === 'refuse-chosen' && Object.hasOwn(options.extra, name)))
      missing.push(name);
  }
  for (const name of missing) refuseMissing(name, body);
  return options.flavor === 'litellm' ? wrapped(body) : body;
}
