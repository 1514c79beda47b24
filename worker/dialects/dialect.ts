import { ApiError } from '@continuo/shared/errors.ts';
import { MAX_TOP_LOGPROBS } from '@continuo/shared/logprob.ts';
import type { GenerationDefaults, SamplingParameters } from '@continuo/shared/sampling.ts';
import { type DialectName, dialectName, type Tenant } from '@continuo/shared/tenant.ts';

type AllDefaults = { readonly [Field in keyof GenerationDefaults]-?: NonNullable<GenerationDefaults[Field]> };

/** Values for absent request fields. */
export interface Defaults extends AllDefaults {
  readonly repeatLastN: SamplingParameters['repeatLastN'];
  readonly penaltyScope: SamplingParameters['penaltyScope'];
}

/**
 * The details in which completion servers differ. Fields of the request always take precedence. `text_offset`
 * starts at 0 in the returned text in all dialects, as llama.cpp documents it and vLLM does it.
 */
export interface Dialect {
  readonly name: DialectName;
  /** The dialect's own defaults. Missing ones come from the model, otherwise from BASE_DEFAULTS. */
  readonly defaults: Partial<Defaults>;
  /** Whether the stop string stays at the end of the text. */
  readonly includeStop: boolean;
  readonly contextOverflow: 'truncate' | 'error';
  /** Maximum of `logprobs`. */
  readonly maxLogprobs: number;
  /** Usage in streams: an additional chunk on request, or always in the last chunk of the last choice. */
  readonly streamUsage: 'on-request' | 'last-choice';
  /** An error's `code`: the name of the error, or the HTTP status as a number. */
  readonly errorCode: 'string' | 'status';
  /** If the key may use only one model, every model name selects it. */
  readonly anyModel: boolean;
  /** A completion without a model uses the model `default`. */
  readonly modelOptional: boolean;
  /** `strict` of a `response_format` rejects schemas with undeclared or optional properties. */
  readonly strictSchemas: boolean;
  /** Sampling fields and `stop` have the ranges of llama.cpp's server. */
  readonly llamaCppRanges: boolean;
}

const BASE_DEFAULTS: Defaults = {
  maxTokens: 16,
  temperature: 1,
  topP: 1,
  topK: 0,
  minP: 0,
  repetitionPenalty: 1,
  repeatLastN: -1,
  penaltyScope: 'generated',
};

const OPENAI: Dialect = {
  name: 'openai',
  defaults: {},
  includeStop: false,
  contextOverflow: 'truncate',
  maxLogprobs: 5,
  streamUsage: 'on-request',
  errorCode: 'string',
  anyModel: false,
  modelOptional: false,
  strictSchemas: true,
  llamaCppRanges: false,
};

/** OpenAI's dialect for requests that name no dialect. It allows more alternatives and schemas. */
export const OWN: Dialect = { ...OPENAI, maxLogprobs: MAX_TOP_LOGPROBS, strictSchemas: false };

/** Each dialect lists only its differences from that one. */
export const DIALECTS: Readonly<Record<DialectName, Dialect>> = {
  openai: OPENAI,
  fireworks: {
    ...OWN,
    name: 'fireworks',
    includeStop: true,
    streamUsage: 'last-choice',
  },
  llamacpp: {
    ...OWN,
    name: 'llamacpp',
    defaults: {
      maxTokens: -1,
      temperature: 0.8,
      topP: 0.95,
      topK: 40,
      minP: 0.05,
      repetitionPenalty: 1.1,
      repeatLastN: 64,
      penaltyScope: 'all',
    },
    errorCode: 'status',
    anyModel: true,
    modelOptional: true,
    llamaCppRanges: true,
  },
  mistralrs: {
    ...OWN,
    name: 'mistralrs',
    contextOverflow: 'error',
    modelOptional: true,
  },
  vllm: {
    ...OWN,
    name: 'vllm',
    contextOverflow: 'error',
    errorCode: 'status',
    modelOptional: true,
  },
};

/** Returns the defaults of one request: the dialect's, otherwise the model's, otherwise BASE_DEFAULTS. */
export const defaultsOf = (dialect: Dialect, model: GenerationDefaults): Defaults => ({
  ...BASE_DEFAULTS,
  ...given(model),
  ...dialect.defaults,
});

/** Removes undefined fields. */
const given = (defaults: GenerationDefaults): Partial<Defaults> =>
  Object.fromEntries(Object.entries(defaults).filter(([, value]) => value !== undefined));

export const DIALECT_HEADER = 'x-dialect';

/**
 * Returns the dialect of one request: its header, otherwise the tenant's default.
 * @throws ApiError 400 for an unknown dialect
 */
export function chooseDialect(request: Request, tenant: Tenant): Dialect {
  const header = request.headers.get(DIALECT_HEADER);
  if (header === null) return tenant.dialect === 'openai' ? OWN : DIALECTS[tenant.dialect];
  const name = dialectName.safeParse(header.trim().toLowerCase());
  if (name.success) return DIALECTS[name.data];
  const allowed = dialectName.options.map((option) => `'${option}'`).join(', ');
  throw new ApiError(
    'invalid_value',
    `Invalid header '${DIALECT_HEADER}'. Supported values are: ${allowed}.`,
    {
      param: DIALECT_HEADER,
    },
  );
}

/** Returns the dialect for errors before the header is checked: a valid header's, else the tenant's. */
export function provisionalDialect(request: Request, fallback: DialectName = 'openai'): Dialect {
  const name = request.headers.get(DIALECT_HEADER)?.trim().toLowerCase() ?? fallback;
  return DIALECTS[Object.hasOwn(DIALECTS, name) ? (name as DialectName) : fallback];
}
