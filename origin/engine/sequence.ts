import type { EventOf, FinishReason } from '@continuo/shared/generation.ts';
import { TokenHistory } from '../sampling/token-history.ts';
import type { OpenRequest, QueuedSequence } from './open-request.ts';
import {
  type SampledToken,
  type SamplingContext,
  SequenceSampling,
  type TokenPlace,
} from './sequence-sampling.ts';
import type { DecodeRow } from './step-plan.ts';
import type { Healing } from './text/healing.ts';
import { SequenceOutput } from './text/sequence-output.ts';
import { TokenBans } from './text/token-bans.ts';
import { wireBytes, wireTokenLogprob } from './token-logprob.ts';

interface Finish {
  readonly reason: FinishReason;
  readonly stopReason: string | number | null;
}

/** What the first token is sampled from, as long as the sequence may return to it. */
interface FirstPlace {
  readonly logits: Float32Array;
  readonly healing: Healing | null;
}

const NOTHING = (): void => undefined;

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
  #history: TokenHistory;
  readonly #sampling: SequenceSampling;
  readonly #output: SequenceOutput;
  readonly #bans = new TokenBans();
  /** Tokens that were undone. They count as generated. */
  #undone = 0;
  #first: FirstPlace | null = null;
  /** First position of the prompt whose KV a healed token has overwritten; Infinity = none. */
  #stale = Number.POSITIVE_INFINITY;
  /** Tokens before the last whose KV is computed again, one per step. */
  #behind = 0;
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
    this.#sampling = new SequenceSampling(queued, context);
    this.#output = new SequenceOutput({
      tokenBytes: context.tokenBytes,
      stops: request.stops,
      banned: request.banned,
      includeStop: submission.includeStop,
      tokenIds: submission.tokenIds,
      logprobs: submission.topLogprobs !== null,
      tokensPerEvent: submission.tokensPerEvent,
    });
    if (maxTokens === 0) this.#end('length', null);
  }

  /** Positions whose KV is in the slot: all tokens except the last, which the next step feeds, and those to compute again. */
  get computed(): number {
    // Before the first token, the whole prompt. The row that is computed meanwhile is not used.
    return this.#length === 0 ? this.#history.length : this.#history.length - 1 - this.#behind;
  }

  get lastToken(): number {
    return this.#history.at(Math.min(this.computed, this.#history.length - 1));
  }

  /** Tokens it may still generate. */
  get remaining(): number {
    return this.#maxTokens - this.completionTokens;
  }

  /** Tokens that were generated, those that were undone included. */
  get completionTokens(): number {
    return this.#length + this.#undone;
  }

  /** Tokens of the sequence. */
  get #length(): number {
    return this.#history.length - this.#history.promptLength;
  }

  get finished(): boolean {
    return this.#finish !== null;
  }

  /** True if its next token has to wait for a later step. */
  get mustWait(): boolean {
    return this.#sampling.mustWait;
  }

  /** 1 / temperature, if the next token can be drawn from a sparse row; else null. */
  get coldness(): number | null {
    return this.#sampling.coldness;
  }

  /** Adds the draw of the next token, from the row that `advance` will get, to the pool. False if it needs more logits first. */
  submitDraw(logits: Float32Array): boolean {
    const isUnused = this.#behind > 0 || this.#length === 0;
    return isUnused || this.#sampling.submitDraw(logits, this.#place);
  }

  /**
   * Samples the next token, or takes it from the pool.
   * @param logits one raw row; not modified
   * @throws NoCandidatesError, InvalidLogitsError
   */
  advance(logits: Float32Array, now: number): void {
    this.skippedSteps = 0;
    if (this.#behind > 0) {
      this.#behind--;
      return;
    }
    const at = this.#history.length;
    while (this.#length > 0 && this.#take(() => this.#sampling.next(logits, this.#place), now)) {
      // The next step computes the row of an earlier place again, or this one.
      if (this.#history.length < at || !this.#sampling.mayRepeat) break;
    }
    if (this.#length === 0 && this.#finish === null) this.#sampleFirst(now);
    else if (!this.#output.mayReturn) this.#first = null;
  }

  /**
   * Samples the first token.
   * @param logits the row of the prompt's last position
   * @param healing the last tokens of the prompt, which are chosen again first; null = none
   */
  begin(logits: Float32Array, healing: Healing | null, now: number): void {
    this.#first = { logits, healing };
    this.#sampleFirst(now);
    // The runner overwrites the row.
    if (this.#first !== null) this.#first = { logits: logits.slice(), healing };
  }

  /** Samples the first token; in a later step if too many were taken back in this one. */
  #sampleFirst(now: number): void {
    const { logits, healing } = this.#first!;
    const sample = (): SampledToken | null => {
      const healed = healing && this.#heal(healing);
      if (healed === null) return this.#sampling.next(logits, this.#place);
      this.#history = healed.history;
      return healed.token;
    };
    while (this.#take(sample, now)) if (!this.#sampling.mayRepeat) return;
    this.#behind = Math.max(0, this.#history.length - 1 - this.#stale);
    this.#stale = Number.POSITIVE_INFINITY;
    if (!this.#output.mayReturn) this.#first = null;
  }

  #heal(healing: Healing) {
    const { tokens } = this.request.prompt(this.queued.promptIndex);
    return this.#sampling.heal(healing, tokens, tokens.length + this.#maxTokens, (at) => this.#bannedAt(at));
  }

  /** Samples and takes a token. Returns true if it was undone, so that another one has to be sampled. */
  #take(sample: () => SampledToken | null, now: number): boolean {
    const restore = this.request.isBanning ? this.#sampling.save() : NOTHING;
    const token = sample();
    if (token === null) {
      this.#end('stop', null);
      return false;
    }
    this.#history.push(token.id);
    const isUndone = this.#append(token, restore);
    this.#startedAt ??= now;
    const { maxGenerationMs } = this.request.submission;
    const isLate = maxGenerationMs !== undefined && now - this.#startedAt >= maxGenerationMs;
    if (this.#finish === null && (this.remaining <= 0 || isLate)) this.#end('length', null);
    this.request.countToken(this.queued.choices, now);
    return isUndone && this.#finish === null;
  }

  /** Returns a function that removes the last token and all later ones, and bans the token from its place. */
  #undo({ id }: SampledToken, restore: () => void): () => void {
    const history = this.#history;
    const at = history.length - 1;
    const score = this.#score;
    return () => {
      const first = at === history.promptLength;
      this.#bans.add(id, at, first);
      const undone = history.length - at;
      this.#undone += undone;
      history.truncate(at);
      this.#score = score;
      restore();
      if (!first) return;
      if (undone > 1) this.#stale = at;
      const { tokens } = this.request.prompt(this.queued.promptIndex);
      if (at < tokens.length) this.#history = new TokenHistory(tokens, tokens.length + this.#maxTokens);
    };
  }

  #bannedAt(position: number): readonly number[] {
    return this.#bans.at(position, this.#length === 0);
  }

  /** Ends the sequence before its first token. */
  endWithoutText(): void {
    this.#end('length', null);
  }

  get #place(): TokenPlace {
    const mayEnd = this.#length >= this.request.submission.minTokens;
    const banned = this.#bannedAt(this.#history.length);
    const forbidden = mayEnd ? banned : [...this.request.finishTokenIds, ...banned];
    return { history: this.#history, step: this.#length, mayEnd, forbidden };
  }

  /**
   * Adds a token to the output, and ends the sequence if the token or a stop string ends it. Returns true if it completes a
   * banned phrase.
   */
  #append(token: SampledToken, restore: () => void): boolean {
    const { id, logprobs, healed } = token;
    const { submission, stopTokenIds, endTokenIds } = this.request;
    const { tokenBytes } = this.#context;
    const isStop = stopTokenIds.has(id);
    const ends = isStop || endTokenIds.has(id);
    const isSpecial = tokenBytes.special[id] === 1;
    const visible = ends ? isStop && submission.includeStop : !(submission.skipSpecialTokens && isSpecial);
    const undo = this.request.isBanning ? this.#undo(token, restore) : NOTHING;
    this.#score += logprobs?.logprob ?? 0;
    const sendsLogprob = logprobs !== null && submission.topLogprobs !== null;
    const bytesOf = (other: number) => wireBytes(tokenBytes, other, healed);
    const logprob = sendsLogprob ? wireTokenLogprob(bytesOf, id, logprobs, !visible) : null;
    const armed = !ends && this.#length >= submission.minTokens;
    if (this.#output.push({ id, logprob, visible, armed, skip: healed.length, undo })) return true;
    if (ends) this.#end('stop', isStop ? id : null);
    else if (this.#output.stop !== null) this.#end('stop', this.#output.stop);
    else this.#sampling.accept(token);
    return false;
  }

  #end(reason: FinishReason, stopReason: string | number | null): void {
    this.#finish = { reason, stopReason };
    this.#output.end();
  }

  /**
   * Returns the events that are due, including `finish`.
   * @param minIntervalMs least interval that the machine can afford; a longer one of the submission wins
   */
  publish(now: number, minIntervalMs: number): EventOf<'token' | 'finish'>[] {
    if (this.#finish === null && !this.#isDue(now, minIntervalMs)) return [];
    this.#publishedAt = now;
    const tokens = this.#output.take(this.#choice, this.completionTokens, this.#finish === null);
    const finish = this.#finish && this.#finishEvent(this.#finish);
    const events: EventOf<'token' | 'finish'>[] = [];
    for (let copy = 0; copy < this.queued.choices; copy++) {
      const choice = this.#choice + copy;
      for (const event of tokens) events.push({ ...event, choice });
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
