import * as z from 'zod';
import { documented } from './documented.ts';
import { type FinishReason, finishReason, type GenerationEvent, type Usage, usage } from './generation.ts';
import { always } from './json-fields.ts';

/** Returns the larger of two counts of the same generation, of which one may have stopped earlier. */
export const maxUsage = (a: Usage, b: Usage): Usage => ({
  promptTokens: Math.max(a.promptTokens, b.promptTokens),
  cachedTokens: Math.max(a.cachedTokens, b.cachedTokens),
  completionTokens: Math.max(a.completionTokens, b.completionTokens),
});

/**
 * Counts what a generation has used, from its events. The Worker and the origin count the same way, so their
 * numbers agree wherever the stream stops.
 */
export class UsageTally {
  readonly finishReasons: FinishReason[] = [];
  /** Unix milliseconds of the first generated token; null before it. */
  firstTokenAt: number | null = null;
  /** Longest time that a prompt waited in the queue, in milliseconds. */
  queueMs = 0;
  readonly #now: () => number;
  /** Tokens generated so far, by choice. */
  readonly #completion = new Map<number, number>();
  /** Tokens of each prompt. */
  #prompts: readonly number[] = [];
  /** Prompts whose computation has begun: what a failure leaves uncomputed of the others is not used. */
  readonly #started = new Set<number>();
  readonly #finished = new Set<number>();
  #promptTokens = 0;
  #cachedTokens = 0;
  #completionTokens = 0;
  /** Usage in the terminal event. `done` replaces the count, that of an error is at least the count. */
  #final: Usage | null = null;

  /** @param now Unix milliseconds */
  constructor(now: () => number) {
    this.#now = now;
  }

  add(event: GenerationEvent): void {
    switch (event.type) {
      case 'token':
        this.firstTokenAt ??= this.#now();
        this.#generated(event.choice, event.completionTokens);
        break;
      case 'finish':
        this.#generated(event.choice, event.completionTokens);
        this.finishReasons.push(event.reason);
        this.#finished.add(event.choice);
        break;
      case 'accepted':
        this.#prompts = event.promptTokens;
        this.#promptTokens = event.promptTokens.reduce((sum, count) => sum + count, 0);
        break;
      case 'started':
        this.#started.add(event.prompt);
        this.#cachedTokens += event.cachedTokens;
        this.queueMs = Math.max(this.queueMs, event.queueMs);
        break;
      case 'done':
        this.#final = event.usage;
        break;
      case 'error':
        this.#final = event.usage ? maxUsage(event.usage, this.usage) : null;
        break;
    }
  }

  /** Returns the tokens of all prompts and of the choices so far, with this event. */
  tokensWith(event: GenerationEvent): number {
    const isCount = event.type === 'token' || event.type === 'finish';
    const more = isCount ? event.completionTokens - (this.#completion.get(event.choice) ?? 0) : 0;
    return this.#promptTokens + this.#completionTokens + more;
  }

  /** Returns the tokens that an unfinished choice has generated; null if it has finished. */
  unfinished(choice: number): number | null {
    return this.#finished.has(choice) ? null : (this.#completion.get(choice) ?? 0);
  }

  get usage(): Usage {
    return (
      this.#final ?? {
        promptTokens: this.#prompts.reduce((sum, count, at) => sum + (this.#started.has(at) ? count : 0), 0),
        cachedTokens: this.#cachedTokens,
        completionTokens: this.#completionTokens,
      }
    );
  }

  #generated(choice: number, tokens: number): void {
    this.#completionTokens += tokens - (this.#completion.get(choice) ?? 0);
    this.#completion.set(choice, tokens);
  }
}

/** What usage can be grouped by. */
export const USAGE_GROUPS = ['day', 'tenant', 'model', 'key', 'user'] as const;
export type UsageGroup = (typeof USAGE_GROUPS)[number];

/** What the requests of a group have used. */
export const usageRow = z.object({
  object: always('usage'),
  day: z.string().optional().describe('UTC day, if grouped by it.'),
  tenant: z.string().optional().describe('Id of the tenant, if grouped by it.'),
  model: z.string().optional().describe('Id of the model, if grouped by it.'),
  key: z.string().optional().describe('Id of the key, if grouped by it.'),
  user: z.string().optional().describe("Hash of the end user's name, if grouped by it."),
  requests: z.int().describe('All requests that reached a model.'),
  completed: z.int().describe('Requests that ended regularly.'),
  failed: z.int().describe('Requests that ended with an error.'),
  cancelled: z.int().describe('Requests whose client disconnected.'),
  abandoned: z.int().describe('Requests whose Worker never reported their end.'),
  finish_stop: z.int().describe('Choices that ended with finish_reason stop.'),
  finish_length: z.int().describe('Choices that ended with finish_reason length.'),
  prompt_tokens: z.int().describe('Tokens of all prompts.'),
  cached_tokens: z.int().describe('Prompt tokens found in the prefix cache.'),
  completion_tokens: z.int().describe('Generated tokens.'),
  cost_micros: z.int().describe('Cost in micro-units of the currency.'),
  mean_latency_ms: z.number().nullable().describe('Mean duration of a request in milliseconds.'),
  mean_first_token_ms: z.number().nullable().describe('Mean time to the first token in milliseconds.'),
});

/** GET /usage?account=… of the origin: the usage of a generation; null for an unknown account. */
export const usageAccount = z
  .object({
    usage,
    /** Of the finished choices, in the order in which they finished. */
    finishReasons: z.array(finishReason).default([]),
    ended: z.boolean(),
    /** Milliseconds from the arrival of the request to its first token; null before the first token. */
    firstTokenMs: z.number().min(0).nullable().default(null),
  })
  .nullable();
export type UsageAccount = NonNullable<z.infer<typeof usageAccount>>;

/** The upstreams' answer about the usage of a generation. */
export interface KnownAccount {
  /** Null if no upstream that answered knows the account. */
  readonly account: UsageAccount | null;
  /** True if all upstreams have answered. */
  readonly complete: boolean;
}

/** GET /usage?under=… of the origin: the accounts whose names begin with this text. */
export const accountList = z.array(
  z.object({
    account: z.string(),
    model: z.string(),
    usage,
    /** Milliseconds since the request arrived. */
    ageMs: z.number().min(0),
  }),
);
export type ListedAccount = z.infer<typeof accountList>[number];

/** One request, without its text. */
export const requestObject = z.object({
  object: always('request'),
  id: z.string().describe('The x-request-id of the answer.'),
  created_at: z.int().describe('Time of the request in Unix seconds.'),
  key: z.string().describe('Id of the key.'),
  user: z.string().nullable().describe("Hash of the end user's name; null = none."),
  model: z.string().describe('Id of the model.'),
  status: z
    .enum(['completed', 'failed', 'cancelled', 'abandoned'])
    .describe('How it ended; abandoned: its Worker never reported the end.'),
  error_code: z.string().nullable().describe('Code of the error; null = none.'),
  finish_reasons: z.array(z.string()).describe('The finish_reason of each choice.'),
  prompt_tokens: z.int().describe('Tokens of all prompts.'),
  cached_tokens: z.int().describe('Prompt tokens found in the prefix cache.'),
  completion_tokens: z.int().describe('Generated tokens.'),
  cost_micros: z.int().describe('Cost in micro-units of the currency.'),
  price_version: z.string().nullable().describe('Version of the price; null = no price.'),
  latency_ms: z.number().describe('Duration in milliseconds.'),
  first_token_ms: z.number().nullable().describe('Milliseconds to the first token; null = none.'),
});

export const REQUEST_EXAMPLE: z.infer<typeof requestObject> = {
  object: 'request',
  id: 'req_4f1c',
  created_at: 1_795_000_000,
  key: 'q3Xw9LkT2bZc',
  user: null,
  model: 'default',
  status: 'completed',
  error_code: null,
  finish_reasons: ['length'],
  prompt_tokens: 12,
  cached_tokens: 8,
  completion_tokens: 16,
  cost_micros: 30,
  price_version: '7',
  latency_ms: 420,
  first_token_ms: 38,
};
requestObject.register(documented, { name: 'Request', example: REQUEST_EXAMPLE });
