import type { CompiledGrammar } from '@continuo/grammar/runtime/constraint.ts';
import type { PatternSet } from '@continuo/grammar/runtime/pattern-set.ts';
import type { EventOf, Usage } from '@continuo/shared/generation.ts';
import { type LogprobRow, rowsTooLarge } from '@continuo/shared/logprob.ts';
import type { EmbeddedImage } from '../../model/model-runner.ts';
import { logprobRow } from '../../sampling/logprob-row.ts';
import { isGreedy } from '../../sampling/parameters.ts';
import type { SamplerWorkspace } from '../../sampling/workspace.ts';
import type { TokenBytes } from '../../tokenizer/token-bytes.ts';
import type { Submission, SubmittedPrompt } from '../messages.ts';
import type { PriorityRequest, PrioritySequence } from '../scheduling/priority-queues.ts';
import type { WantedLogits } from '../scheduling/step-plan.ts';
import type { WaitingRequest } from '../scheduling/waiting-queue.ts';
import type { SearchTargets } from '../text/text-search.ts';
import { TextSet } from '../text/text-set.ts';

/** The parts of a request that are computed after its admission. */
export interface Preparation {
  readonly grammar: CompiledGrammar | null;
  readonly stopPatterns: PatternSet | null;
  readonly bannedPatterns: PatternSet | null;
  /** Image vectors of each prompt; empty if there are no images. */
  readonly images: readonly (readonly EmbeddedImage[])[];
}

/**
 * A sequence before its first token: one choice of a prompt, or all choices of a greedy request, which are
 * equal. Holds no token history, so that waiting sequences need little memory.
 */
export interface QueuedSequence extends PrioritySequence {
  readonly request: OpenRequest;
  readonly promptIndex: number;
  /** Index of its first choice within the prompt. */
  readonly firstChoice: number;
  /** Choices that share the sequence. */
  readonly choices: number;
}

/** Returns the number of sequences of a submission; greedy choices are computed once. */
export function sequenceCount({ prompts, choices, sampling }: Submission): number {
  return prompts.length * (isGreedy(sampling) ? 1 : choices);
}

export function prefixNamespace({ cachePrompt, cacheNamespace, requestId }: Submission): string {
  // With cachePrompt off, the request's own choices still share their prompt.
  return cachePrompt ? `cache ${cacheNamespace}` : `request ${requestId}`;
}

/** Returns how many positions at a prompt's start the prefix store may keep: those before the first image. */
export const storablePositions = (
  { cachePrompt }: Submission,
  { images, tokens }: SubmittedPrompt,
): number => (cachePrompt ? (images?.[0]?.at ?? tokens.length) : 0);

/** A prompt with so few chunks left goes before longer ones. */
const MAX_SHORT_CHUNKS = 2;

/** Names a tenant's account of time: one for interactive and one for flex requests. */
export const accountOf = ({ flex, tenantId }: Pick<Submission, 'flex' | 'tenantId'>): string =>
  `${flex ? 'flex' : 'interactive'} ${tenantId}`;

interface OpeningContext extends Preparation {
  /** The model's end tokens. */
  readonly eosIds: readonly number[];
  /** Milliseconds on the engine's clock, as all times below. */
  readonly submittedAt: number;
  readonly deadline: number;
}

/** A request from its admission to its terminal event: the state that its sequences share. */
export class OpenRequest implements WaitingRequest<QueuedSequence>, PriorityRequest {
  readonly submission: Submission;
  readonly tenantId: string;
  readonly weight: number;
  readonly flex: boolean;
  readonly grammar: CompiledGrammar | null;
  readonly stops: SearchTargets;
  /** What must not appear in the text. */
  readonly banned: SearchTargets;
  readonly isBanning: boolean;
  readonly stopTokenIds: ReadonlySet<number>;
  /** Ids that end a sequence without being a stop token. */
  readonly endTokenIds: ReadonlySet<number>;
  /** Ids that are forbidden until min_tokens is reached. */
  readonly finishTokenIds: readonly number[];
  /** Requests of the same namespace share cached prefixes. */
  readonly prefixNamespace: string;
  readonly deadline: number;
  readonly account: string;
  /** Sequences that have not finished. */
  unfinished: number;
  /** Sequences that have left the waiting queue. */
  #taken = 0;
  /** Base64 characters of the rows so far. */
  #rowCharacters = 0;

  readonly #closing = new AbortController();
  readonly #submittedAt: number;
  readonly #promptStarted: boolean[];
  readonly #images: Preparation['images'];
  #cachedTokens = 0;
  #completionTokens = 0;
  #startedAt: number | null = null;
  #firstTokenAt: number | null = null;
  #lastTokenAt: number | null = null;

  constructor(
    submission: Submission,
    { grammar, stopPatterns, bannedPatterns, images, eosIds, submittedAt, deadline }: OpeningContext,
  ) {
    this.submission = submission;
    this.tenantId = submission.tenantId;
    this.weight = submission.weight;
    this.flex = submission.flex;
    this.grammar = grammar;
    this.#images = images;
    const { stop, stopRegex = [], bannedPhrases = [] } = submission;
    this.stops = { texts: new TextSet(stop), patterns: stopPatterns, sources: stopRegex };
    const texts = bannedPhrases.filter((phrase) => typeof phrase === 'string');
    this.banned = { texts: new TextSet(texts), patterns: bannedPatterns, sources: [] };
    this.isBanning = bannedPhrases.length > 0;
    this.stopTokenIds = new Set(submission.stopTokenIds);
    this.endTokenIds = new Set([...submission.endTokenIds, ...(submission.ignoreEos ? [] : eosIds)]);
    this.finishTokenIds = [...new Set([...this.stopTokenIds, ...this.endTokenIds])];
    this.prefixNamespace = prefixNamespace(submission);
    this.unfinished = sequenceCount(submission);
    this.deadline = deadline;
    this.account = accountOf(submission);
    this.#submittedAt = submittedAt;
    this.#promptStarted = submission.prompts.map(() => false);
  }

  /** A closed request sends no more events. */
  get closed(): boolean {
    return this.#closing.signal.aborted;
  }

  /** Aborted when the request is closed; stops a prefill that is running for it. */
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

  /** Depends on the request only, so that later choices of the prompt get the same bits. */
  wantedLogits(promptIndex: number): WantedLogits {
    if (this.submission.promptTopLogprobs !== null) return 'all';
    return this.prompt(promptIndex).maxTokens === 0 ? 'none' : 'last';
  }

  /**
   * Returns whether a caller waits for the first token of a prompt, and few positions of it are left to
   * compute.
   * @param chunk positions of a prefill chunk
   */
  isShort(promptIndex: number, computed: number, chunk: number): boolean {
    const left = this.prompt(promptIndex).tokens.length - computed;
    return !this.flex && this.wantedLogits(promptIndex) === 'last' && left <= MAX_SHORT_CHUNKS * chunk;
  }

  /** Image vectors of a prompt. */
  images(promptIndex: number): readonly EmbeddedImage[] {
    return this.#images[promptIndex] ?? [];
  }

  get waiting(): number {
    return sequenceCount(this.submission) - this.#taken;
  }

  /** Returns the next waiting sequence, prompt by prompt. */
  takeSequence(): QueuedSequence {
    const { choices, prompts } = this.submission;
    const perPrompt = sequenceCount(this.submission) / prompts.length;
    const promptIndex = Math.floor(this.#taken / perPrompt);
    const firstChoice = this.#taken % perPrompt;
    const { tokens, maxTokens } = this.prompt(promptIndex);
    this.#taken++;
    const cost = tokens.length + maxTokens;
    return { request: this, promptIndex, firstChoice, choices: choices / perPrompt, cost, order: 0 };
  }

  /**
   * Returns the logprobs of a row of logits for `copies` choices; null if the request wants none.
   * @throws ApiError 400 if the rows of the answer become too large
   */
  row(logits: Float32Array, copies: number, workspace: SamplerWorkspace): LogprobRow | null {
    const { logprobRows } = this.submission;
    if (logprobRows === undefined) return null;
    const row = logprobRow(logits, logprobRows, workspace);
    this.#rowCharacters += copies * (row.logprobs.length + (row.ids?.length ?? 0));
    if (this.#rowCharacters > logprobRows.maxCharacters) throw rowsTooLarge(logprobRows.maxCharacters, null);
    return row;
  }

  /** Whether a token ends a sequence. */
  ends(id: number): boolean {
    return this.stopTokenIds.has(id) || this.endTokenIds.has(id);
  }

  /** Whether a token adds text. */
  shows(id: number, { special }: TokenBytes): boolean {
    const { includeStop, skipSpecialTokens } = this.submission;
    if (this.ends(id)) return includeStop && this.stopTokenIds.has(id);
    return !(skipSpecialTokens && special[id] === 1);
  }

  hasStarted(promptIndex: number): boolean {
    return this.#promptStarted[promptIndex] === true;
  }

  /** Notes that a prompt has entered a slot, and returns the event. */
  start(promptIndex: number, cachedTokens: number, now: number): EventOf<'started'> {
    this.#promptStarted[promptIndex] = true;
    this.#cachedTokens += cachedTokens;
    this.#startedAt ??= now;
    return { type: 'started', prompt: promptIndex, cachedTokens, queueMs: now - this.#submittedAt };
  }

  /** Counts one generated token for each of the choices that share its sequence. */
  countToken(choices: number, now: number): void {
    this.#completionTokens += choices;
    this.#firstTokenAt ??= now;
    this.#lastTokenAt = now;
  }

  /** Returns the usage so far. A prompt counts once it has started. */
  usage(): Usage {
    let promptTokens = 0;
    this.submission.prompts.forEach(({ tokens }, index) => {
      if (this.hasStarted(index)) promptTokens += tokens.length;
    });
    return { promptTokens, cachedTokens: this.#cachedTokens, completionTokens: this.#completionTokens };
  }

  /** Returns the terminal event of a request that has finished. */
  done(now: number): EventOf<'done'> {
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
