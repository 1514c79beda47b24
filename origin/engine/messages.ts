import type { BugTrace } from '@continuo/shared/error-details.ts';
import type { EventOf, GenerationEvent, GenerationRequest } from '@continuo/shared/generation.ts';
import type { LogprobRow } from '@continuo/shared/logprob.ts';
import type { SamplerParameters } from '../sampling/parameters.ts';
import type { PrefixStoreStatus } from './kv/prefix-store.ts';
import type { PromptSpan } from './kv/prompt-match.ts';
import type { ChunkDirectoryStatus } from './kv/second-tier.ts';

/** Messages between the origin and its engine thread: structured clones over a MessagePort, both ways. */

/** Sampling parameters with a seed: the request's own, or a random one. It keys every draw of the request. */
export type SeededSampling = SamplerParameters & { readonly seed: number | string };

/** Fields of a request that the engine reads as they came over the wire. */
export const ENGINE_FIELDS = [
  'tenantId',
  'weight',
  'cachePrompt',
  'choices',
  'minTokens',
  'stop',
  'stopRegex',
  'bannedPhrases',
  'stopTokenIds',
  'maxPromptMs',
  'maxGenerationMs',
  'includeStop',
  'ignoreEos',
  'topLogprobs',
  'logprobTokenIds',
  'logprobRows',
  'promptTopLogprobs',
  'echo',
  'scores',
  'tokenIds',
  'skipSpecialTokens',
  'tokensPerEvent',
] as const satisfies readonly (keyof GenerationRequest)[];
export type EngineFields = Readonly<Pick<GenerationRequest, (typeof ENGINE_FIELDS)[number]>>;

/** One request, tokenised and fitted to the context. Its sequences are admitted or refused together. */
export interface Submission extends EngineFields {
  /** Unique within this process. */
  readonly requestId: string;
  /** True = runs in slots that no interactive request needs, and may be suspended. */
  readonly flex: boolean;
  /** Namespace of the prefix cache: tenant and salt. */
  readonly cacheNamespace: string;
  readonly prompts: readonly SubmittedPrompt[];
  /** Ids that end a sequence as the model's end tokens do, but also with `ignoreEos`. */
  readonly endTokenIds: readonly number[];
  readonly sampling: SeededSampling;
  /** A WireConstraint as JSON, because a schema may nest deeper than structured cloning allows. */
  readonly constraint: string | null;
  /**
   * Minimum milliseconds between two token events of one choice, except before the first and the last; 0 =
   * one per step. A busy engine waits longer (see runs/requests.ts). All choices send in the same steps, so
   * the reader wakes up once.
   */
  readonly eventIntervalMs: number;
  /** Unix milliseconds at which the request times out. */
  readonly deadline: number;
}

/** An image in a prompt. It takes the place of `count` image tokens. */
export interface SubmittedImage extends PromptSpan {
  /** [3, height, width], as the model's encoder expects them. */
  readonly pixels: Float32Array<ArrayBuffer>;
}

export interface SubmittedPrompt {
  readonly tokens: Int32Array;
  /** In prompt order; absent if there are none. */
  readonly images?: readonly SubmittedImage[];
  /** Tokens to generate per choice; prompt + maxTokens fits the context. 0 = evaluate only. */
  readonly maxTokens: number;
  /** Position whose logits give the first logprob of the prompt, that of the token after it; absent = 0. */
  readonly logprobsFrom?: number;
  /** First token that the `prompt` event reports; absent = 0. */
  readonly echoFrom?: number;
  /** First position that is chosen again, at least 1; absent = none. */
  readonly healFrom?: number;
}

/**
 * What the engine has computed of a prompt that is done, in place of the `prompt` event. Numbers are sent as
 * one block of memory, because it takes 0.1 s to write 20 logprobs of each of 8,192 tokens out, and streams
 * would wait for that.
 */
export interface PromptResult {
  readonly type: 'prompt';
  readonly prompt: number;
  /** Present if `promptTopLogprobs` was requested. */
  readonly scores?: {
    /** The memory of `PromptLogprobs`. */
    readonly bytes: Uint8Array;
    readonly top: number;
    readonly first: number;
    /** Of the last tokens; none if they were not requested. */
    readonly rows: readonly LogprobRow[];
  };
}

export type EngineEvent = Exclude<GenerationEvent, EventOf<'prompt'>> | PromptResult;

export type EngineCommand =
  | { readonly type: 'submit'; readonly submission: Submission }
  | { readonly type: 'abort'; readonly requestId: string }
  /** Answered with `alive` between two steps. */
  | { readonly type: 'ping' }
  | { readonly type: 'stop' };

/** Counters of one run of the model, for /metrics. Times in milliseconds. */
export interface StepReport {
  readonly kind: 'decode' | 'prefill';
  /** Sequences computed. */
  readonly rows: number;
  /** Decode: tokens generated. Prefill: length of the chunk. */
  readonly tokens: number;
  readonly modelMs: number;
  readonly samplingMs: number;
  readonly otherMs: number;
}

export interface EngineStatus {
  readonly running: number;
  readonly waiting: number;
  /** Sequences that gave up their slot and wait to continue. */
  readonly suspended?: number;
  /** How often sequences have been suspended since the engine started. */
  readonly suspensions?: number;
  readonly healthy: boolean;
  /** Decode runs are graphs of CUDA. Absent = false. */
  readonly usesGraphs?: boolean;
  /** The device may begin a decode run before the tokens of the last one are read. Absent = false. */
  readonly runsAhead?: boolean;
  /** Absent if the engine keeps no prefixes beyond its slots. */
  readonly prefixStore?: PrefixMemoryStatus | undefined;
  /** Absent if the engine keeps no prefixes on disk. */
  readonly prefixDisk?: ChunkDirectoryStatus | undefined;
}

export interface PrefixMemoryStatus extends PrefixStoreStatus {
  /** Time to copy KV out of slots and back. */
  readonly copySeconds: number;
}

export type EngineReport =
  | {
      readonly type: 'ready';
      readonly slots: number;
      readonly contextLength: number;
      readonly vocabularySize: number;
      /** Prompt positions of one image; null if the model takes no images. */
      readonly imagePositions: number | null;
      /** Whether it computes on a GPU, whose memory a terminated thread does not free. */
      readonly onGpu: boolean;
      /** One line for the log: the model's dimensions and the KV cache's size. */
      readonly summary: string;
      readonly warning: string | null;
    }
  /**
   * The engine cannot start or continue, and the thread ends after this. If `permanent`, the model is the
   * cause. If `deviceLost`, no thread of this process can use the device any more.
   */
  | {
      readonly type: 'failed';
      readonly message: string;
      readonly permanent: boolean;
      readonly deviceLost: boolean;
    }
  /** A run failed: the runtime's code and message. The engine goes on, unless `failed` follows. */
  | { readonly type: 'fault'; readonly message: string }
  /** A request failed because of a defect of the origin. */
  | { readonly type: 'defect'; readonly trace: BugTrace }
  /** One line for the log about something that costs speed only. */
  | { readonly type: 'warning'; readonly message: string }
  | { readonly type: 'alive' }
  /** Answers to `submit`; refused if the waiting queue is full. */
  | { readonly type: 'admitted'; readonly requestId: string }
  | { readonly type: 'refused'; readonly requestId: string; readonly retryAfterMs: number }
  /** The constraint and the patterns of an admitted request are valid. */
  | { readonly type: 'compiled'; readonly requestId: string; readonly ignoredKeywords: readonly string[] }
  /** Events of one or more steps, for all requests: [requestId, events in order]. */
  | {
      readonly type: 'step';
      readonly events: readonly (readonly [string, readonly EngineEvent[]])[];
      readonly reports: readonly StepReport[];
      readonly status: EngineStatus;
    };
