import type { GenerationEvent } from '../../shared/generation.ts';
import type { SamplingParameters } from '../../shared/sampling.ts';
import type { Span } from './span.ts';

/** The engine thread's protocol: structured-clone messages over a MessagePort, both ways. */

/** One request, tokenised and fitted to the context. Its sequences are admitted or refused together. */
export interface Submission {
  /** Never used twice in this process. */
  readonly requestId: string;
  readonly tenantId: string;
  /** Share of the engine relative to other waiting tenants. */
  readonly weight: number;
  /** Namespace of the prefix cache: tenant and salt. */
  readonly cacheKey: string;
  readonly cachePrompt: boolean;
  readonly prompts: readonly SubmittedPrompt[];
  /** Sequences per prompt, all from one prefill. */
  readonly choices: number;
  readonly minTokens: number;
  /** Stop strings; matched on the generated text only. */
  readonly stop: readonly string[];
  /** Ids that end a sequence as somebody's stops; their text is shown with `includeStop` alone. */
  readonly stopTokenIds: readonly number[];
  /** Ids that end a sequence as the model's end tokens do, also where those are ignored. */
  readonly endTokenIds: readonly number[];
  readonly includeStop: boolean;
  readonly ignoreEos: boolean;
  readonly sampling: SamplingParameters;
  /** Drawn by the caller when the request named none: it keys every draw. */
  readonly seed: number;
  /** A WireConstraint as JSON: a schema may nest deeper than structured cloning can follow. */
  readonly constraint: string | null;
  readonly logprobs: number | null;
  readonly promptLogprobs: number | null;
  readonly echo: boolean;
  readonly scores: boolean;
  readonly tokenIds: boolean;
  readonly skipSpecialTokens: boolean;
  /**
   * Token events of one choice are merged for so many milliseconds at least (longer where many run, see event-pace.ts),
   * but for the first and the last; 0 = one per step. All choices speak at the same moments, so that the engine's
   * reader is woken once for all of them.
   */
  readonly eventIntervalMs: number;
  /** Unix milliseconds at which the request is given up. */
  readonly deadline: number;
}

/** An image that stands in a prompt, in the place of as many of the model's image tokens. */
export interface SubmittedImage extends Span {
  /** [3, height, width], as the model's encoder wants them. */
  readonly pixels: Float32Array<ArrayBuffer>;
}

export interface SubmittedPrompt {
  readonly tokens: Int32Array;
  /** In the order in which they stand; absent when there are none. */
  readonly images?: readonly SubmittedImage[];
  /** Tokens to generate per choice; prompt + maxTokens fits the context. 0 = evaluate only. */
  readonly maxTokens: number;
}

export type EngineCommand =
  | { readonly type: 'submit'; readonly submission: Submission }
  | { readonly type: 'abort'; readonly requestId: string }
  | { readonly type: 'stop' };

/** Counters of one step, for /metrics; times in milliseconds. */
export interface StepReport {
  readonly kind: 'decode' | 'prefill';
  /** Sequences computed in the step. */
  readonly rows: number;
  /** Tokens the step has brought: one per row of a decode or more where drafts came true, the chunk's length of a prefill. */
  readonly tokens: number;
  /** Tokens that speculation guessed in the step, and how many of them came true. */
  readonly drafted: number;
  readonly accepted: number;
  readonly modelMs: number;
  readonly samplingMs: number;
  readonly otherMs: number;
}

export interface EngineStatus {
  readonly running: number;
  readonly waiting: number;
  readonly healthy: boolean;
}

export type EngineReport =
  | {
      readonly type: 'ready';
      readonly slots: number;
      readonly contextLength: number;
      readonly vocabularySize: number;
      /** Positions that an image takes in a prompt; null when the model sees none. */
      readonly imagePositions: number | null;
      /** One line for the log: the model's dimensions and the KV cache's size. */
      readonly summary: string;
      readonly warning: string | null;
    }
  /** The engine could not start or cannot go on; the message is one clear line, permanent when the model is at fault. The thread ends after it. */
  | { readonly type: 'failed'; readonly message: string; readonly permanent: boolean }
  /** Answer to `submit`; refused when the queue is full. */
  | { readonly type: 'admitted'; readonly requestId: string }
  | { readonly type: 'refused'; readonly requestId: string; readonly retryAfterMs: number }
  /** All events of one step, for all requests: [requestId, events in order]. */
  | {
      readonly type: 'step';
      readonly events: readonly (readonly [string, readonly GenerationEvent[]])[];
      readonly reports: readonly StepReport[];
      readonly status: EngineStatus;
    };
