import { constraintFields } from '@continuo/shared/completion-constraints.ts';
import { exactNumber } from '@continuo/shared/exact-numbers.ts';
import type { GenerationRequest, WireConstraint } from '@continuo/shared/generation.ts';
import { NEUTRAL_SAMPLING, type SamplingParameters } from '@continuo/shared/sampling.ts';
import { estimateTokens } from './token-estimate.ts';
import type { ShownPrompt, UpstreamContext } from './upstream.ts';
import type { Flavor } from './upstream-config.ts';

/**
 * The table of the fields of POST /completions: their values, the servers that have them, and what happens
 * elsewhere.
 */

export interface BodyOptions extends Pick<UpstreamContext, 'extra' | 'tokensAsIds' | 'shown'> {
  /** The server's own name of the model. */
  readonly model: string;
  /** Tokens of prompt and completion together. */
  readonly contextLength: number;
  readonly flavor: Flavor;
  /** Sent as `priority` of flex requests; undefined = none is sent. */
  readonly flexPriority?: number | undefined;
  /** Sent as `cache_salt`; null = none is sent. */
  readonly cacheNamespace: string | null;
  /** Null = no field `user` is sent. */
  readonly user: string | null;
}

interface BodyField {
  readonly servers: readonly Flavor[];
  /**
   * Returns the value for a request; null or undefined = neutral, and not sent. Absent = only clients set the
   * field.
   */
  readonly value?: (request: GenerationRequest, options: BodyOptions) => unknown;
  /**
   * What happens at other servers. Absent = the request is refused. `refuse-chosen`: only if the client has
   * set the field, because a dialect's default may be left out. `leave-out`: for fields that change no token,
   * or only their number in time.
   */
  readonly elsewhere?: 'refuse-chosen' | 'leave-out';
  /** The server needs only one of this field and that one. */
  readonly synonymOf?: string;
  /** LiteLLM gets the field inside of `extra_body`. */
  readonly wrapped?: true;
}

/** Servers that get every field of the client. */
export const OPEN: readonly Flavor[] = ['generic', 'continuo'];
const CONTINUO: readonly Flavor[] = ['continuo'];
/** Source: the field lists of vLLM's OpenAI-compatible completions, without KV transfer. */
const VLLM: readonly Flavor[] = [...OPEN, 'vllm', 'llm-d'];
/** Source: the field list of llama.cpp's server for completions, without slots, adapters, filters. */
const LLAMACPP: readonly Flavor[] = [...OPEN, 'llamacpp'];
const BOTH: readonly Flavor[] = [...VLLM, 'llamacpp'];
/** They hand further fields to servers and accounts of their own, so they get few of them. */
const GATEWAYS: readonly Flavor[] = ['litellm', 'openrouter'];
/** Servers with OpenAI's legacy API. */
const ALL: readonly Flavor[] = [...BOTH, ...GATEWAYS, 'openai'];

const isNeutral = (value: unknown, neutral: unknown): boolean =>
  value === neutral || (typeof value === 'object' && JSON.stringify(value) === JSON.stringify(neutral));

const unless = (value: unknown, neutral: unknown): unknown => (isNeutral(value, neutral) ? null : value);

/** A field of the request under another name. */
const field = (
  servers: readonly Flavor[],
  name: keyof GenerationRequest,
  neutral: unknown = null,
): BodyField => ({ servers, value: (request) => unless(request[name], neutral) });

const sampling = (servers: readonly Flavor[], name: keyof SamplingParameters): BodyField => ({
  servers,
  value: (request) => unless(request.sampling[name], NEUTRAL_SAMPLING[name]),
  elsewhere: 'refuse-chosen',
});

/** A sampling parameter of OpenAI's API, which is sent even if it is neutral. */
const always = (name: keyof SamplingParameters): BodyField => ({
  servers: ALL,
  value: (request) => request.sampling[name],
});

const constraint = (
  servers: readonly Flavor[],
  write: (constraint: WireConstraint) => unknown,
): BodyField => ({
  servers,
  value: (request, { flavor, extra }) => {
    if (request.constraint === null) return null;
    // Another Continuo refuses two constraints. Only that of tools is not among the client's own fields.
    const isSent = Object.keys(extra).some((name) => Object.hasOwn(constraintFields, name));
    return flavor === 'continuo' && isSent ? null : write(request.constraint);
  },
});

export const CONSTRAINT_FIELD = 'structured_outputs';

/** True if the answer has the prompt with its logprobs before the completion, as the server echoes it. */
export const echoesLogprobs = ({ topLogprobs }: GenerationRequest, { echo }: ShownPrompt): boolean =>
  echo && topLogprobs !== null;

/**
 * Returns the most tokens to generate. The number of prompt tokens is an estimate, so a server that checks
 * the sum may still reject a dense prompt.
 */
function maxTokensOf(
  { maxTokens, prompts, contextOverflow }: GenerationRequest,
  { contextLength }: BodyOptions,
): number {
  const room = Math.max(1, contextLength - Math.max(...prompts.map(estimateTokens)));
  if (maxTokens === 'end') return room;
  return contextOverflow === 'truncate' ? Math.min(maxTokens, room) : maxTokens;
}

/** By name, in the order in which a request is refused for lack of them. */
export const BODY_FIELDS: ReadonlyMap<string, BodyField> = new Map(
  Object.entries<BodyField>({
    model: { servers: ALL, value: (_, { model }) => model },
    prompt: { servers: ALL, value: ({ prompts }) => (prompts.length === 1 ? prompts[0] : prompts) },
    suffix: { servers: ALL, value: ({ suffix }) => suffix || null },
    max_tokens: { servers: ALL, value: maxTokensOf },
    n: field(ALL, 'choices'),
    best_of: { servers: ALL },
    stream: field(ALL, 'stream'),
    stream_options: { servers: ALL, value: ({ stream }) => (stream ? { include_usage: true } : null) },
    echo: { servers: ALL, value: (request, { shown }) => echoesLogprobs(request, shown) || null },
    stop: field(ALL, 'stop', []),
    logprobs: { servers: ALL, value: ({ topLogprobs, scores }) => topLogprobs ?? (scores ? 0 : null) },
    user: { servers: ALL, value: (_, { user }) => user },

    temperature: always('temperature'),
    top_p: always('topP'),
    frequency_penalty: always('frequencyPenalty'),
    presence_penalty: always('presencePenalty'),
    seed: { servers: ALL, value: ({ sampling: { seed } }) => (seed === null ? null : exactNumber(seed)) },
    logit_bias: {
      servers: ALL,
      value: ({ sampling: { logitBias } }) =>
        logitBias.length > 0 ? Object.fromEntries(logitBias.map(([id, bias]) => [id, bias ?? -100])) : null,
    },
    top_k: sampling([...BOTH, ...GATEWAYS], 'topK'),
    min_p: sampling([...BOTH, ...GATEWAYS], 'minP'),
    repetition_penalty: sampling([...VLLM, ...GATEWAYS], 'repetitionPenalty'),
    repeat_penalty: { ...sampling(LLAMACPP, 'repetitionPenalty'), synonymOf: 'repetition_penalty' },
    repeat_last_n: sampling(LLAMACPP, 'repeatLastN'),
    dynatemp_range: sampling(LLAMACPP, 'dynatempRange'),
    dynatemp_exponent: sampling(LLAMACPP, 'dynatempExponent'),
    typical_p: sampling(LLAMACPP, 'typicalP'),
    top_n_sigma: sampling(LLAMACPP, 'topNSigma'),
    xtc_probability: sampling(LLAMACPP, 'xtcProbability'),
    xtc_threshold: sampling(LLAMACPP, 'xtcThreshold'),
    min_keep: sampling(LLAMACPP, 'minKeep'),
    mirostat: sampling(LLAMACPP, 'mirostat'),
    mirostat_tau: sampling(LLAMACPP, 'mirostatTau'),
    mirostat_eta: sampling(LLAMACPP, 'mirostatEta'),
    dry_multiplier: sampling(LLAMACPP, 'dryMultiplier'),
    dry_base: sampling(LLAMACPP, 'dryBase'),
    dry_allowed_length: sampling(LLAMACPP, 'dryAllowedLength'),
    dry_penalty_last_n: sampling(LLAMACPP, 'dryPenaltyLastN'),
    dry_sequence_breakers: sampling(LLAMACPP, 'drySequenceBreakers'),
    allowed_token_ids: sampling(VLLM, 'allowedTokenIds'),
    bad_words: sampling(VLLM, 'badWords'),
    length_penalty: { servers: VLLM },
    n_keep: { servers: LLAMACPP },
    n_indent: { servers: LLAMACPP },
    samplers: { servers: LLAMACPP },

    structured_outputs: constraint(VLLM, (sent) => {
      switch (sent.type) {
        case 'json_object':
        case 'json_schema':
          return null;
        case 'gbnf':
        case 'lark':
          return { grammar: sent.value };
        default:
          return { [sent.type]: sent.value };
      }
    }),
    response_format: {
      ...constraint([...VLLM, ...GATEWAYS], (sent) => {
        if (sent.type === 'json_object') return { type: 'json_object' };
        if (sent.type !== 'json_schema') return null;
        return { type: 'json_schema', json_schema: { name: 'output', schema: sent.value } };
      }),
      synonymOf: CONSTRAINT_FIELD,
      wrapped: true,
    },
    // llama.cpp ignores `response_format` outside chat completions.
    json_schema: {
      ...constraint(['llamacpp'], (sent) => {
        if (sent.type === 'json_object') return { type: 'object' };
        return sent.type === 'json_schema' ? sent.value : null;
      }),
      synonymOf: CONSTRAINT_FIELD,
    },
    grammar: {
      ...constraint(LLAMACPP, (sent) => (sent.type === 'gbnf' ? sent.value : null)),
      synonymOf: CONSTRAINT_FIELD,
    },
    guided_json: { servers: VLLM },
    guided_regex: { servers: VLLM },
    guided_choice: { servers: VLLM },
    guided_grammar: { servers: VLLM },
    guided_whitespace_pattern: { servers: VLLM },

    prompt_logprobs: {
      servers: [...VLLM, 'litellm'],
      value: (_, { shown }) => shown.promptLogprobs,
      wrapped: true,
    },
    min_tokens: field(VLLM, 'minTokens', 0),
    stop_token_ids: field(VLLM, 'stopTokenIds', []),
    stop_regex: field(CONTINUO, 'stopRegex'),
    token_healing: field(CONTINUO, 'tokenHealing'),
    banned_phrases: field(CONTINUO, 'bannedPhrases'),
    parse_special: { servers: CONTINUO, value: ({ plainText }) => (plainText ? false : null) },
    include_stop_str_in_output: field(VLLM, 'includeStop', false),
    ignore_eos: field(BOTH, 'ignoreEos', false),
    skip_special_tokens: field(VLLM, 'skipSpecialTokens', true),
    spaces_between_special_tokens: { servers: VLLM },
    add_special_tokens: field(VLLM, 'addSpecialTokens', true),
    truncate_prompt_tokens: field(VLLM, 'truncatePromptTokens'),
    logprob_token_ids: field(VLLM, 'logprobTokenIds'),
    cache_prompt: { ...field(LLAMACPP, 'cachePrompt', true), elsewhere: 'leave-out' },
    cache_salt: {
      servers: VLLM,
      value: (_, { cacheNamespace }) => cacheNamespace,
      elsewhere: 'leave-out',
    },
    // Clients cannot set it.
    priority: {
      servers: VLLM,
      value: ({ flex }, { flexPriority }) => (flex && flexPriority) || null,
      elsewhere: 'leave-out',
    },
    t_max_prompt_ms: { ...field(OPEN, 'maxPromptMs'), elsewhere: 'leave-out' },
    t_max_predict_ms: { ...field(LLAMACPP, 'maxGenerationMs'), elsewhere: 'leave-out' },
  }),
);
