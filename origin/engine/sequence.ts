import type { EventOf, FinishReason, GenerationEvent } from '@continuo/shared/generation.ts';
import type { Constraint } from '../grammar/constraint.ts';
import type { GrammarWork } from '../grammar/grammar-work.ts';
import { type TokenLogprobs, tokenLogprob } from '../sampling/logprobs.ts';
import type { SamplerPool } from '../sampling/pool/sampler-pool.ts';
import { Sampler } from '../sampling/sampler.ts';
import { TokenHistory } from '../sampling/token-history.ts';
import type { SamplerVocabulary } from '../sampling/vocabulary.ts';
import type { SamplerWorkspace } from '../sampling/workspace.ts';
import type { OpenRequest, QueuedSequence } from './open-request.ts';
import type { DecodeRow } from './step-plan.ts';
import { SequenceOutput } from './text/sequence-output.ts';
import { wireTokenLogprob } from './token-logprob.ts';

/** What all sequences of an engine use to turn logits into tokens. */
export interface SamplingContext {
  readonly vocabulary: SamplerVocabulary;
  readonly workspace: SamplerWorkspace;
  /** Draws the tokens of several sequences in parallel; null = each sequence samples by itself. */
  readonly pool: SamplerPool | null;
  /** Scratch for a grammar's mask with the end tokens added; ⌈vocabulary ÷ 32⌉ words. */
  readonly mask: Uint32Array;
  readonly grammarWork: GrammarWork;
}

/** A sampled token, with its logprobs if they are wanted. */
interface SampledToken {
  readonly id: number;
  readonly logprobs: TokenLogprobs | null;
}

interface Finish {
  readonly reason: FinishReason;
  readonly stopReason: string | number | null;
}

const NONE: readonly number[] = [];

/** A sequence from its first token on: logits in, tokens and events out. */
export class Sequence implements DecodeRow {
  readonly request: OpenRequest;
  readonly queued: QueuedSequence;
  slot = -1;
  /** Steps in a row that it has waited because its tenant had no grammar work left. */
  skippedSteps = 0;

  readonly #context: SamplingContext;
  /** Index of its first choice, as in events. */
  readonly #choice: number;
  readonly #maxTokens: number;
  readonly #history: TokenHistory;
  readonly #sampler: Sampler;
  readonly #constraint: Constraint | null;
  readonly #output: SequenceOutput;
  /** The pool's handle of the next token's draw; −1 = none. */
  #draw = -1;
  /** Sum of the tokens' raw logprobs. */
  #score = 0;
  #finish: Finish | null = null;
  /** Time of the first token. */
  #startedAt: number | null = null;
  /** Time of the last event. */
  #publishedAt = Number.NEGATIVE_INFINITY;

  constructor(queued: QueuedSequence, context: SamplingContext) {
    const { request, promptIndex, firstChoice } = queued;
    const { submission } = request;
    const { tokens, maxTokens } = request.prompt(promptIndex);
    this.request = request;
    this.queued = queued;
    this.#context = context;
    this.#choice = promptIndex * submission.choices + firstChoice;
    this.#maxTokens = maxTokens;
    this.#history = new TokenHistory(tokens, tokens.length + maxTokens);
    const identity = { seed: submission.sampling.seed, prompt: promptIndex, choice: firstChoice };
    this.#sampler = new Sampler(submission.sampling, identity, context.vocabulary, context.workspace);
    const onWork = (units: number) => context.grammarWork.spend(request.tenantId, units);
    this.#constraint = request.grammar?.start(onWork) ?? null;
    this.#output = new SequenceOutput({
      tokenBytes: context.vocabulary.tokenBytes,
      stops: request.stops,
      includeStop: submission.includeStop,
      tokenIds: submission.tokenIds,
      logprobs: submission.topLogprobs !== null,
    });
    if (maxTokens === 0) this.#end('length', null);
  }

  /** Positions whose KV is in the slot: all tokens except the last, which the next step feeds. */
  get computed(): number {
    return this.#history.length - 1;
  }

  get lastToken(): number {
    return this.#history.at(this.#history.length - 1);
  }

  /** Tokens it may still generate. */
  get remaining(): number {
    return this.#maxTokens - this.completionTokens;
  }

  get completionTokens(): number {
    return this.#history.length - this.#history.promptLength;
  }

  get finished(): boolean {
    return this.#finish !== null;
  }

  /** True if its next token has to wait for a later step. */
  get mustWait(): boolean {
    return this.#constraint !== null && this.#context.grammarWork.isSpent(this.request.tenantId);
  }

  /**
   * Adds the draw of the next token to the pool, unless a grammar or allowed ids mask the row, or its logprobs are listed.
   * @param logits the row that `advance` will get
   */
  submitDraw(logits: Float32Array): void {
    const sampler = this.#sampler;
    const { pool } = this.#context;
    const { logprobTokenIds } = this.request.submission;
    if (pool === null || this.#constraint !== null || sampler.allowed !== null || logprobTokenIds) return;
    const edits = sampler.edit(logits, this.#history, this.#forbidden);
    const topLogprobs = this.#wantsLogprobs ? (this.request.submission.topLogprobs ?? 0) : null;
    this.#draw = pool.add(sampler.draw, logits, edits, this.completionTokens, topLogprobs);
  }

  /**
   * Samples the next token, or takes it from the pool.
   * @param logits one raw row; not modified
   * @throws NoCandidatesError, InvalidLogitsError
   */
  advance(logits: Float32Array, now: number): void {
    this.skippedSteps = 0;
    const token = this.#takeFromPool() ?? this.#sample(logits);
    if (token === null) {
      this.#end('stop', null);
      return;
    }
    this.#history.push(token.id);
    this.#append(token);
    this.#startedAt ??= now;
    const { maxGenerationMs } = this.request.submission;
    const isLate = maxGenerationMs !== null && now - this.#startedAt >= maxGenerationMs;
    if (this.#finish === null && (this.remaining === 0 || isLate)) this.#end('length', null);
    this.request.countToken(this.queued.choices, now);
  }

  /** Ends the sequence before its first token. */
  endWithoutText(): void {
    this.#end('length', null);
  }

  #takeFromPool(): SampledToken | null {
    const { pool } = this.#context;
    const draw = this.#draw;
    const id = pool?.token(draw) ?? null;
    this.#draw = -1;
    if (pool === null || id === null) return null;
    this.#sampler.draw.bound = pool.bound(draw);
    return { id, logprobs: this.#wantsLogprobs ? pool.logprobs(draw) : null };
  }

  /** Returns null if the grammar allows no token. */
  #sample(logits: Float32Array): SampledToken | null {
    const mask = this.#mask();
    if (mask === 'nothing') return null;
    const sampler = this.#sampler;
    const id = sampler.sample(logits, this.#history, this.completionTokens, mask, this.#forbidden);
    if (!this.#wantsLogprobs) return { id, logprobs: null };
    const { workspace } = this.#context;
    const { topLogprobs, logprobTokenIds = topLogprobs ?? 0 } = this.request.submission;
    return { id, logprobs: tokenLogprob(logits, id, logprobTokenIds, workspace, sampler.sampledRaw) };
  }

  get #wantsLogprobs(): boolean {
    const { topLogprobs, scores } = this.request.submission;
    return topLogprobs !== null || scores;
  }

  /** Ids that may not come next, whatever the grammar allows. */
  get #forbidden(): readonly number[] {
    return this.#isBelowMinTokens ? this.request.finishTokenIds : NONE;
  }

  get #isBelowMinTokens(): boolean {
    return this.completionTokens < this.request.submission.minTokens;
  }

  /**
   * The tokens that the grammar allows; null = all. End tokens are allowed only where the text is a complete match:
   * one that is not flagged as special has a text that the grammar may allow elsewhere.
   */
  #mask(): Uint32Array | null | 'nothing' {
    if (this.#constraint === null) return null;
    const { mask } = this.#context;
    mask.set(this.#constraint.mask());
    const { finishTokenIds, endTokenIds } = this.request;
    const mayEnd = !this.#isBelowMinTokens;
    for (const id of mayEnd ? endTokenIds : finishTokenIds) mask[id >>> 5]! &= ~(1 << (id & 31));
    if (mayEnd && this.#constraint.accepting) for (const id of endTokenIds) mask[id >>> 5]! |= 1 << (id & 31);
    return isEmpty(mask) ? 'nothing' : mask;
  }

  /** Adds a token to the output, and ends the sequence if the token or a stop string ends it. */
  #append({ id, logprobs }: SampledToken): void {
    const { submission, stopTokenIds, endTokenIds } = this.request;
    const { tokenBytes } = this.#context.vocabulary;
    const isStop = stopTokenIds.has(id);
    const ends = isStop || endTokenIds.has(id);
    const isSpecial = tokenBytes.special[id] === 1;
    const visible = ends ? isStop && submission.includeStop : !(submission.skipSpecialTokens && isSpecial);
    this.#score += logprobs?.logprob ?? 0;
    const sendsLogprob = logprobs !== null && submission.topLogprobs !== null;
    const logprob = sendsLogprob ? wireTokenLogprob(tokenBytes, id, logprobs, !visible) : null;
    this.#output.push(id, logprob, visible, !ends && this.completionTokens >= submission.minTokens);
    if (ends) this.#end('stop', isStop ? id : null);
    else if (this.#output.stop !== null) this.#end('stop', this.#output.stop);
    else this.#constraint?.accept(id);
  }

  #end(reason: FinishReason, stopReason: string | number | null): void {
    this.#finish = { reason, stopReason };
    this.#output.end();
  }

  /**
   * Returns the events that are due, including `finish`.
   * @param minIntervalMs least interval that the machine can afford; a longer one of the submission wins
   */
  publish(now: number, minIntervalMs: number): GenerationEvent[] {
    if (this.#finish === null && !this.#isDue(now, minIntervalMs)) return [];
    this.#publishedAt = now;
    const event = this.#output.take(this.#choice, this.completionTokens, this.#finish === null);
    const finish = this.#finish === null ? null : this.#finishEvent(this.#finish);
    const events: GenerationEvent[] = [];
    for (let copy = 0; copy < this.queued.choices; copy++) {
      const choice = this.#choice + copy;
      if (event !== null) events.push({ ...event, choice });
      if (finish !== null) events.push({ ...finish, choice });
    }
    return events;
  }

  /** Intervals are counted from the clock's zero, so that all sequences send in the same steps. */
  #isDue(now: number, minIntervalMs: number): boolean {
    const { eventIntervalMs } = this.request.submission;
    if (eventIntervalMs === 0) return true;
    const interval = Math.max(eventIntervalMs, minIntervalMs);
    return Math.floor(now / interval) > Math.floor(this.#publishedAt / interval);
  }

  #finishEvent(finish: Finish): EventOf<'finish'> {
    const event: EventOf<'finish'> = {
      type: 'finish',
      choice: this.#choice,
      reason: finish.reason,
      stopReason: finish.stopReason,
      completionTokens: this.completionTokens,
    };
    if (this.request.submission.scores) event.score = this.#score;
    return event;
  }
}

function isEmpty(mask: Uint32Array): boolean {
  for (let word = 0; word < mask.length; word++) if (mask[word] !== 0) return false;
  return true;
}
