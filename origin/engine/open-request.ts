import type { GenerationEvent, Usage } from '../../shared/generation.ts';
import type { CompiledGrammar } from '../grammar/constraint.ts';
import type { EmbeddedImage } from '../model/model-runner.ts';
import { isGreedy } from '../sampling/token-draw.ts';
import type { Preparation } from './admission.ts';
import type { Submission, SubmittedPrompt } from './messages.ts';
import { StopStrings } from './stop-checker.ts';
import type { Waiting } from './waiting-queue.ts';

/** One choice of one prompt while it waits for a slot, or several that cannot differ. */
export interface PendingSequence extends Waiting {
  readonly request: OpenRequest;
  readonly promptIndex: number;
  /** The first of its choices. */
  readonly candidate: number;
  /** Choices that get what this one sequence generates. */
  readonly copies: number;
}

/** Sequences a submission runs: greedy choices are computed once. */
export function sequenceCount({ prompts, choices, sampling }: Submission): number {
  return prompts.length * (isGreedy(sampling) ? 1 : choices);
}

export interface OpeningContext extends Preparation {
  /** Tokens that end a text. */
  readonly eosIds: readonly number[];
  /** Milliseconds on the engine's clock, as every time below. */
  readonly submittedAt: number;
  readonly deadline: number;
}

/** A request from its submission to its last event: what its sequences share and what they add up to. */
export class OpenRequest {
  readonly submission: Submission;
  readonly grammar: CompiledGrammar | null;
  readonly stops: StopStrings;
  readonly stopIds: ReadonlySet<number>;
  /** Ids that end a sequence by themselves. */
  readonly eosIds: ReadonlySet<number>;
  /** Forbidden until min_tokens is reached. */
  readonly endIds: readonly number[];
  /** Whose KV it may take and who may take its own. */
  readonly cacheNamespace: string;
  readonly deadline: number;
  /** Sequences that have not finished. */
  unfinished: number;

  readonly #closing = new AbortController();
  readonly #submittedAt: number;
  readonly #promptStarted: boolean[];
  readonly #images: Preparation['images'];
  #cachedTokens = 0;
  #completionTokens = 0;
  #startedAt: number | null = null;
  #firstTokenAt: number | null = null;
  #lastTokenAt: number | null = null;

  constructor(submission: Submission, { grammar, images, eosIds, submittedAt, deadline }: OpeningContext) {
    this.submission = submission;
    this.grammar = grammar;
    this.#images = images;
    this.stops = new StopStrings(submission.stop);
    this.stopIds = new Set(submission.stopTokenIds);
    this.eosIds = new Set([...submission.endTokenIds, ...(submission.ignoreEos ? [] : eosIds)]);
    this.endIds = [...new Set([...this.stopIds, ...this.eosIds])];
    // Without a cache the request's own choices still share their prompt, and nobody else can.
    this.cacheNamespace = submission.cachePrompt
      ? `cache ${submission.cacheKey}`
      : `request ${submission.requestId}`;
    this.unfinished = sequenceCount(submission);
    this.deadline = deadline;
    this.#submittedAt = submittedAt;
    this.#promptStarted = submission.prompts.map(() => false);
  }

  /** No further event may follow. */
  get closed(): boolean {
    return this.#closing.signal.aborted;
  }

  /** Aborted when the request is closed: stops a prefill that runs for it. */
  get signal(): AbortSignal {
    return this.#closing.signal;
  }

  close(): void {
    this.#closing.abort();
  }

  prompt(index: number): SubmittedPrompt {
    const prompt = this.submission.prompts[index];
    if (prompt === undefined) throw new RangeError(`request has no prompt ${index}`);
    return prompt;
  }

  /** What stands in a prompt in the place of its image tokens. */
  images(promptIndex: number): readonly EmbeddedImage[] {
    return this.#images[promptIndex] ?? [];
  }

  /** All its sequences, prompt by prompt, for the queue. */
  sequences(): PendingSequence[] {
    const { tenantId, weight, choices, prompts } = this.submission;
    const perPrompt = sequenceCount(this.submission) / prompts.length;
    return prompts.flatMap(({ tokens, maxTokens }, promptIndex) =>
      Array.from({ length: perPrompt }, (_, candidate) => ({
        request: this,
        promptIndex,
        candidate,
        copies: choices / perPrompt,
        tenantId,
        weight,
        cost: tokens.length + maxTokens,
      })),
    );
  }

  hasStarted(promptIndex: number): boolean {
    return this.#promptStarted[promptIndex] === true;
  }

  /** Notes that a prompt has entered a slot; the event that says so. */
  start(promptIndex: number, cachedTokens: number, now: number): GenerationEvent {
    this.#promptStarted[promptIndex] = true;
    this.#cachedTokens += cachedTokens;
    this.#startedAt ??= now;
    return { type: 'started', prompt: promptIndex, cachedTokens, queueMs: now - this.#submittedAt };
  }

  /** @param choices that got it */
  countToken(choices: number, now: number): void {
    this.#completionTokens += choices;
    this.#firstTokenAt ??= now;
    this.#lastTokenAt = now;
  }

  /** What has been used so far; a prompt counts from its start. */
  usage(): Usage {
    let promptTokens = 0;
    this.submission.prompts.forEach(({ tokens }, index) => {
      if (this.hasStarted(index)) promptTokens += tokens.length;
    });
    return { promptTokens, cachedTokens: this.#cachedTokens, completionTokens: this.#completionTokens };
  }

  done(now: number): GenerationEvent {
    const startedAt = this.#startedAt ?? now;
    const firstTokenAt = this.#firstTokenAt ?? now;
    return {
      type: 'done',
      usage: this.usage(),
      timings: {
        queueMs: startedAt - this.#submittedAt,
        promptMs: firstTokenAt - startedAt,
        generationMs: (this.#lastTokenAt ?? firstTokenAt) - firstTokenAt,
      },
    };
  }
}
