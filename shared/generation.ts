import * as z from 'zod';
import { characters } from './json-fields.ts';
import { logprobRow, logprobRows, MAX_LISTED_LOGPROBS, MAX_TOP_LOGPROBS } from './logprob.ts';
import { samplingParameters, tokenLimitOf } from './sampling.ts';
import { weight } from './tenant.ts';
import { isTokenId } from './tokenization.ts';

/**
 * The wire protocol between Worker and origin. POST /generate takes a GenerationRequest and answers NDJSON,
 * one GenerationEvent per line; an empty line is a heartbeat. Each stream ends with exactly one `done` or
 * `error`. Both sides ignore fields that they do not know, because they are not upgraded at the same moment.
 * The origin announces what it knows: shared/capabilities.ts.
 */
export const PROTOCOL_VERSION = 2;

/** Maximum number of images in one request. */
export const MAX_IMAGES = 64;

/**
 * A text, token ids, or a mixture of both, joined in order. Checked by hand, because a body may have millions
 * of ids, and a schema for each of them would block the origin.
 */
const wirePrompt = z.custom<string | (string | number)[]>(
  (value) => typeof value === 'string' || (Array.isArray(value) && value.length > 0 && value.every(isPart)),
  'expected a text, or a list of token ids and texts',
);
const isPart = (value: unknown): boolean => typeof value === 'string' || isTokenId(value);
export type WirePrompt = z.infer<typeof wirePrompt>;

/** The constraint of the generated text. `value` is the source text, or a JSON Schema, also as text. */
export const wireConstraint = z.discriminatedUnion('type', [
  z.object({ type: z.literal('gbnf'), value: z.string() }),
  z.object({ type: z.literal('regex'), value: z.string() }),
  z.object({ type: z.literal('lark'), value: z.string() }),
  z.object({
    type: z.literal('json_schema'),
    value: z.unknown(),
    /** Objects may have undeclared properties where the schema does not mention them. */
    openObjects: z.boolean().optional(),
    /** Declared properties may come in any order. */
    anyKeyOrder: z.boolean().optional(),
  }),
  z.object({ type: z.literal('json_object') }),
  z.object({ type: z.literal('choice'), value: z.array(z.string()).min(1) }),
]);
export type WireConstraint = z.infer<typeof wireConstraint>;

const infillParts = z.object({
  /** Start of the text to generate, behind the middle marker. */
  middle: z.string(),
  /** Other files of the project, in the order of the prompt. */
  files: z.array(z.object({ name: z.string(), text: z.string() })),
});
export type InfillFile = z.infer<typeof infillParts>['files'][number];

export const generationRequest = z.object({
  version: z.literal(PROTOCOL_VERSION),
  requestId: z.string().min(1).max(128),
  /** Unique name of the request's usage account, for GET /usage; absent = the account is not read. */
  account: z.string().min(1).max(200).optional(),
  /** Part of every cache key: KV is never shared between tenants. */
  tenantId: z.string().min(1).max(128),
  /** From the tenant's record only. */
  weight,
  model: z.string(),
  prompts: z.array(wirePrompt).min(1),
  /**
   * What precedes every prompt, to score the prompts as its continuations. The `prompt` events then have the
   * tokens after the context only. `joint`: a text is encoded together with the context, if both are texts;
   * `separate`: alone.
   */
  context: z.object({ prompt: wirePrompt, tokenization: z.enum(['joint', 'separate']) }).optional(),
  /** Images for the `<image>` marks of the prompts, in order, as `imageBase64` reads them; absent = none. */
  images: z.array(z.string()).min(1).max(MAX_IMAGES).optional(),
  /** Text after the insertion point (fill-in-the-middle); null = plain completion. */
  suffix: z.string().nullable(),
  /**
   * Further parts of an infill. If present, the model's template is used even if `suffix` is empty, and the
   * parts are cut to fit the context.
   */
  infill: infillParts.optional(),
  /** Sequences per prompt. For best_of the Worker requests more choices and ranks them. */
  choices: z.int().min(1),
  maxTokens: z.int().min(-1).transform(tokenLimitOf),
  minTokens: z.int().min(0),
  stop: z.array(z.string().min(1)),
  /** Regular expressions that end a choice as stop strings do; absent = none. */
  stopRegex: z.array(z.string().min(1)).optional(),
  stopTokenIds: z.array(z.int().min(0)),
  /** Texts and patterns that must not appear in the generated text; absent = none. */
  bannedPhrases: z.array(z.union([z.string().min(1), z.object({ regex: z.string().min(1) })])).optional(),
  /** Choose the last tokens of each prompt again; absent = no. */
  tokenHealing: z.boolean().optional(),
  /** Milliseconds of prefill, then it ends without text; absent = no limit. Not if only evaluated. */
  maxPromptMs: z.int().min(1).optional(),
  /** Milliseconds from a sequence's first token, after which it ends; absent = no limit. */
  maxGenerationMs: z.int().min(1).optional(),
  includeStop: z.boolean(),
  ignoreEos: z.boolean(),
  sampling: samplingParameters,
  constraint: wireConstraint.nullable(),
  /** Top logprobs per generated token, 0..20; null = no logprobs. */
  topLogprobs: z.int().min(0).max(MAX_TOP_LOGPROBS).nullable(),
  /** Ids whose logprobs replace the top logprobs of generated tokens; absent = none. Needs `topLogprobs`. */
  logprobTokenIds: z.array(z.int().min(0)).min(1).max(MAX_LISTED_LOGPROBS).optional(),
  /**
   * Rows of logprobs for every token with `topLogprobs`, and for those of the prompt if `prompt`; absent =
   * none.
   */
  logprobRows: logprobRows.optional(),
  /** Top logprobs per prompt token, 0..20; null = no logprobs. Set for echo with logprobs. */
  promptTopLogprobs: z.int().min(0).max(MAX_TOP_LOGPROBS).nullable(),
  /** Position of each prompt after which its tokens have logprobs; −1 = none have; absent = 0. */
  promptLogprobStart: z.int().min(-1).optional(),
  /** Send the `prompt` event (text and ids of each prompt). */
  echo: z.boolean(),
  /** Keep a running sum of raw logprobs, sent in `finish` (for best_of). */
  scores: z.boolean(),
  /** Send token ids with the text. */
  tokenIds: z.boolean(),
  /** Hide special tokens from the text. */
  skipSpecialTokens: z.boolean(),
  /**
   * Add the tokenizer's own special tokens (BOS) to prompts given as text, unless the text begins with BOS.
   * `always`: to every text, and BOS if the tokenizer adds none.
   */
  addSpecialTokens: z.union([z.boolean(), z.literal('always')]),
  /** Take special tokens and image marks in prompts as text; absent = parse them. Infills always do. */
  plainText: z.boolean().optional(),
  /** If prompt + maxTokens exceed the context: lower maxTokens, or reject the request. */
  contextOverflow: z.enum(['truncate', 'error']),
  /** Keep only the last k prompt tokens; −1 = as many as fit with maxTokens; null = never cut the prompt. */
  truncatePromptTokens: z.int().min(-1).nullable(),
  /** Runs in slots that no interactive request needs, and may be suspended; absent = interactive. */
  flex: z.boolean().optional(),
  /** May take cached KV of this tenant's earlier prompts. */
  cachePrompt: z.boolean(),
  /** The client's `cache_salt`; '' = none. With the tenant, the prompts' namespace in the prefix cache. */
  cacheSalt: characters(256),
  /** False lets the origin merge the events of more steps, because the client gets a plain answer. */
  stream: z.boolean(),
  /** Most tokens of a stream's `token` events; absent = no limit. */
  tokensPerEvent: z.int().min(1).optional(),
  /** Milliseconds from the arrival of the request until it fails. */
  deadlineMs: z.int().min(1),
});
export type GenerationRequest = z.infer<typeof generationRequest>;

/**
 * Whether a request can be found invalid only after its admission, when its constraint and patterns are
 * compiled.
 */
export const needsCompilation = ({
  constraint,
  stopRegex,
  bannedPhrases = [],
}: Pick<GenerationRequest, 'stopRegex' | 'bannedPhrases'> & { readonly constraint: unknown }): boolean =>
  constraint !== null || Boolean(stopRegex) || bannedPhrases.some((phrase) => typeof phrase !== 'string');

/** A likely token. The logprob is the log-softmax of the unmodified logits (natural log, float32). */
const topLogprob = z.tuple([
  /** Token id. */ z.int().min(0),
  /** The token's bytes as a string of code units 0..255. */ z.string(),
  /** Logprob; LOWEST_LOGPROB stands for −∞. */ z.number(),
]);
export type TopLogprob = z.infer<typeof topLogprob>;

const tokenLogprob = z.object({
  id: z.int().min(0),
  /** The token's bytes, one code unit 0..255 per byte; for a special token the bytes of its literal text. */
  bytes: z.string(),
  /** Null for the first prompt token, which nothing predicts. */
  logprob: z.number().nullable(),
  /** Best first; contains the token itself only if it is among the best. */
  topLogprobs: z.array(topLogprob).nullable(),
  /** Position of a prompt token by probability, from 1; absent if it is one of the top logprobs. */
  rank: z.int().min(1).optional(),
  /** Present if `logprobRows` was requested, except of the first prompt token. */
  row: logprobRow.optional(),
  /** The token is part of the sequence but not of the text (a hidden special token). */
  hidden: z.boolean().optional(),
});
export type TokenLogprob = z.infer<typeof tokenLogprob>;

export const finishReason = z.enum(['stop', 'length']);
export type FinishReason = z.infer<typeof finishReason>;

export const usage = z.object({
  /** Counted once per prompt, whatever the number of choices. */
  promptTokens: z.int().min(0),
  cachedTokens: z.int().min(0),
  /** The server does not tell the cached tokens, so they count as 0. */
  cacheUnknown: z.boolean().optional(),
  /** Over all choices, end tokens included. */
  completionTokens: z.int().min(0),
  /** The Worker has ended the choices because this limit of the tenant or key had no room for more. */
  limitReached: z.string().optional(),
});
export type Usage = z.infer<typeof usage>;

/** One stream event: a line of the origin's NDJSON. `choice` = prompt index · choices + candidate index. */
export const generationEvent = z.discriminatedUnion('type', [
  /** The request was accepted and tokenised; always the first line. */
  z.object({
    type: z.literal('accepted'),
    model: z.string(),
    promptTokens: z.array(z.int().min(0)),
    /** Indices of the prompts of which a part was left out; absent = none. */
    cutPrompts: z.array(z.int().min(0)).optional(),
  }),
  /** The first sequence of a prompt has entered a slot. */
  z.object({
    type: z.literal('started'),
    prompt: z.int().min(0),
    cachedTokens: z.int().min(0),
    queueMs: z.number().min(0),
  }),
  /** Once per prompt if `echo` was requested, before the first token of its choices. */
  z.object({
    type: z.literal('prompt'),
    prompt: z.int().min(0),
    text: z.string(),
    ids: z.array(z.int().min(0)),
    /** Of the prompt's tokens; present if `promptTopLogprobs` was requested. */
    logprobs: z.array(tokenLogprob).optional(),
  }),
  /** One or more tokens. `text` is '' while incomplete characters or a possible stop string are held back. */
  z.object({
    type: z.literal('token'),
    choice: z.int().min(0),
    text: z.string(),
    /** Tokens of this choice so far, held-back ones included. */
    completionTokens: z.int().min(0),
    /** Of the tokens since the last event of this choice; present if `topLogprobs` was requested. */
    logprobs: z.array(tokenLogprob).optional(),
    ids: z.array(z.int().min(0)).optional(),
  }),
  z.object({
    type: z.literal('finish'),
    choice: z.int().min(0),
    reason: finishReason,
    /** The stop string, the stop pattern or the stop token id that ended it; null for EOS and length. */
    stopReason: z.union([z.string(), z.int()]).nullable(),
    completionTokens: z.int().min(0),
    /** Sum of the raw logprobs of the generated tokens, if `scores` was requested. */
    score: z.number().optional(),
  }),
  z.object({
    type: z.literal('done'),
    usage,
    /** Milliseconds: from the start of prefill to the first token, and from there to the last. */
    timings: z.object({ queueMs: z.number(), promptMs: z.number(), generationMs: z.number() }),
  }),
  z.object({
    type: z.literal('error'),
    code: z.string(),
    message: z.string(),
    param: z.string().nullable(),
    /** True if the same request may succeed at another upstream or later. */
    retryable: z.boolean(),
    /** Usage up to the error. */
    usage: usage.optional(),
  }),
]);
export type GenerationEvent = z.infer<typeof generationEvent>;
export type EventOf<T extends GenerationEvent['type']> = Extract<GenerationEvent, { type: T }>;

/** Returns true for the event that ends a stream. */
export const isTerminal = ({ type }: GenerationEvent): boolean => type === 'done' || type === 'error';
