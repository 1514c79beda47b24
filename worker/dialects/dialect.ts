import { ApiError } from '../../shared/errors.ts';
import type { GenerationDefaults, SamplingParameters } from '../../shared/sampling.ts';
import { type DialectName, dialectName, type Tenant } from '../../shared/tenant.ts';

type AllDefaults = { readonly [Field in keyof GenerationDefaults]-?: NonNullable<GenerationDefaults[Field]> };

/** What stands in for fields a request leaves out. */
export interface Defaults extends AllDefaults {
  readonly repeatLastN: SamplingParameters['repeatLastN'];
  readonly penaltyScope: SamplingParameters['penaltyScope'];
}

/**
 * The behaviours in which the systems disagree. Fields the caller sends always win. No row is about where `text_offset`
 * starts: of the documents only llama.cpp's says so, at 0 in the returned text, and vLLM does the same.
 */
export interface Dialect {
  readonly name: DialectName;
  /** The dialect's own values. What it does not state is the model's, and else the usual one. */
  readonly defaults: Partial<Defaults>;
  /** The stop string stays at the end of the text. */
  readonly includeStop: boolean;
  readonly contextOverflow: 'truncate' | 'error';
  /** Largest value of `logprobs`. */
  readonly logprobsCeiling: number;
  /** Usage in streams: an extra chunk if asked for, or always on the last choice's last chunk. */
  readonly streamUsage: 'on-request' | 'last-choice';
  /** An error's `code`: the name of the error, or the HTTP status as a number. */
  readonly errorCode: 'string' | 'status';
  /** Any model name is answered by the one model that is served. */
  readonly anyModel: boolean;
}

const USUAL: Defaults = {
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
  logprobsCeiling: 5,
  streamUsage: 'on-request',
  errorCode: 'string',
  anyModel: false,
};

/** Each row states only where it departs from the first. */
export const DIALECTS: Readonly<Record<DialectName, Dialect>> = {
  openai: OPENAI,
  fireworks: { ...OPENAI, name: 'fireworks', includeStop: true, streamUsage: 'last-choice' },
  llamacpp: {
    ...OPENAI,
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
    // Its evaluation clients ask for ten.
    logprobsCeiling: 20,
    errorCode: 'status',
    anyModel: true,
  },
  mistralrs: { ...OPENAI, name: 'mistralrs', contextOverflow: 'error', logprobsCeiling: 20 },
  vllm: { ...OPENAI, name: 'vllm', contextOverflow: 'error', logprobsCeiling: 20, errorCode: 'status' },
};

/** The defaults of one request: the dialect's own, else the model's, else the usual ones. */
export const defaultsOf = (dialect: Dialect, model: GenerationDefaults): Defaults => ({
  ...USUAL,
  ...given(model),
  ...dialect.defaults,
});

/** Only the fields that have a value. */
const given = (defaults: GenerationDefaults): Partial<Defaults> =>
  Object.fromEntries(Object.entries(defaults).filter(([, value]) => value !== undefined));

export const DIALECT_HEADER = 'x-dialect';

/**
 * The dialect of one request: its header, else the tenant's record.
 * @throws ApiError 400 for a name that is no dialect
 */
export function chooseDialect(request: Request, tenant: Tenant): Dialect {
  const header = request.headers.get(DIALECT_HEADER);
  if (header === null) return DIALECTS[tenant.dialect];
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

/** The dialect of an answer given before the header has been judged: the header's if it names one, else the caller's. */
export function provisionalDialect(request: Request, callers: DialectName = 'openai'): Dialect {
  const name = dialectName.safeParse(request.headers.get(DIALECT_HEADER)?.trim().toLowerCase());
  return DIALECTS[name.success ? name.data : callers];
}
