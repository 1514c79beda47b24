import { UnfinishedWork } from '@continuo/grammar/runtime/constraint.ts';
import type { EventOf, FinishReason } from '@continuo/shared/generation.ts';
import type { DrawnToken, DrawRequest } from '../../model/device-draws.ts';
import { TokenHistory } from '../../sampling/token-history.ts';
import { type PromptSnapshots, StateSnapshots } from '../kv/state-snapshots.ts';
import type { DecodeRow } from '../scheduling/step-plan.ts';
import { SequenceOutput } from '../text/sequence-output.ts';
import type { OpenRequest, QueuedSequence } from './open-request.ts';
import { type Finish, SequenceEvents } from './sequence-events.ts';
import {
  type SampledToken,
  type SamplingContext,
  SequenceSampling,
  type TokenPlace,
} from './sequence-sampling.ts';
import { wireBytes, wireTokenLogprob } from './token-logprob.ts';

const NONE: readonly number[] = [];

/** A sequence from its first token on: logits in, tokens and events out. */
export class Sequence implements DecodeRow {
  readonly request: OpenRequest;
  readonly queued: QueuedSequence;
  slot = -1;
  /** Steps in a row that it has waited because its tenant had no grammar work left. */
  skippedSteps = 0;
  /** Sum of the tokens' raw logprobs. */
  score = 0;
  protected history: TokenHistory;
  /** The row that the first token is sampled from, as long as the sequence may need it again. */
  protected firstRow: Float32Array | null = null;
  protected readonly context: SamplingContext;
  protected readonly sampling: SequenceSampling;
  protected readonly output: SequenceOutput;
  /** Null if slots are their KV. */
  protected readonly snapshots: StateSnapshots | null;
  readonly #events: SequenceEvents;
  #finish: Finish | null = null;
  /** Time of the first token. */
  #startedAt: number | null = null;

  /** @param prompt what it begins from; null if slots are their KV */
  constructor(queued: QueuedSequence, context: SamplingContext, prompt: PromptSnapshots | null = null) {
    this.request = queued.request;
    this.queued = queued;
    this.context = context;
    this.snapshots = prompt && new StateSnapshots(prompt);
    this.history = this.newHistory();
    this.sampling = new SequenceSampling(queued, context);
    const { submission, stops } = queued.request;
    this.output = new SequenceOutput({
      tokenBytes: context.tokenBytes,
      stops,
      includeStop: submission.includeStop,
      tokenIds: submission.tokenIds,
      logprobs: submission.topLogprobs !== null,
      tokensPerEvent: submission.tokensPerEvent,
    });
    this.#events = new SequenceEvents(queued, this.output);
  }

  /** Puts the state of its next position into the slot that it has got. */
  enterSlot(): void {
    this.snapshots?.restore(this.slot, this.computed, true);
  }

  protected newHistory(): TokenHistory {
    const { tokens, maxTokens } = this.request.prompt(this.queued.promptIndex);
    return new TokenHistory(tokens, tokens.length + maxTokens);
  }

  /**
   * Positions whose KV is in the slot: all tokens except the last, which the next step feeds. Before the
   * first token, the whole prompt; the row that is computed meanwhile is not used.
   */
  get computed(): number {
    return this.length === 0 ? this.history.length : this.history.length - 1;
  }

  get lastToken(): number {
    return this.history.at(Math.min(this.computed, this.history.length - 1));
  }

  /** Tokens it has generated and still has. */
  protected get length(): number {
    return this.history.length - this.history.promptLength;
  }

  get completionTokens(): number {
    return this.length;
  }

  /** Tokens it may still generate. */
  get remaining(): number {
    return this.request.prompt(this.queued.promptIndex).maxTokens - this.completionTokens;
  }

  /** Null as long as it goes on. */
  get finish(): Finish | null {
    return this.#finish;
  }

  /** True if its next token has to wait for a later step. */
  get mustWait(): boolean {
    return this.sampling.mustWait;
  }

  /** 1 / temperature, if the next token can be drawn from a sparse row; else null. */
  get coldness(): number | null {
    return this.sampling.coldness;
  }

  protected get place(): TokenPlace {
    const mayEnd = this.length >= this.request.submission.minTokens;
    const forbidden = mayEnd ? NONE : this.request.finishTokenIds;
    return { history: this.history, step: this.length, mayEnd, forbidden };
  }

  /** Returns what a device needs to draw the next token; null if it cannot. @throws ApiError */
  drawRequest(): DrawRequest | null {
    // The first token is sampled from the prompt's row.
    return this.length === 0 ? null : this.sampling.drawRequest(this.place);
  }

  /** Takes what the device has drawn for the last request. */
  offer(drawn: DrawnToken | null): void {
    this.sampling.offer(drawn);
  }

  /** Adds the draw of the next token to the pool. False if it needs more logits first. */
  submitDraw(logits: Float32Array): boolean {
    // The first token is sampled from the prompt's row.
    return this.length === 0 || this.sampling.submitDraw(logits, this.place);
  }

  /**
   * Samples the next token, or takes it from the pool. If the work of its grammar goes on in a later step, so
   * does the sequence.
   * @param logits one raw row, the prompt's last one for the first token; not modified
   * @throws NoCandidatesError, InvalidLogitsError
   */
  advance(logits: Float32Array, now: number): void {
    const skipped = this.skippedSteps;
    this.skippedSteps = 0;
    const isNew = this.length === 0 && this.firstRow === null;
    if (isNew) this.firstRow = logits;
    try {
      this.take(this.length === 0 ? this.firstRow! : logits, now);
    } catch (error) {
      if (!(error instanceof UnfinishedWork)) throw error;
      this.skippedSteps = skipped + 1;
    }
    if (this.length > 0 && !this.mayReturn) this.firstRow = null;
    // The runner overwrites the row.
    else if (isNew) this.firstRow = logits.slice();
  }

  /** Whether its first token may still be taken back. */
  protected get mayReturn(): boolean {
    return false;
  }

  /** @throws UnfinishedWork if nothing can be taken in this step */
  protected take(logits: Float32Array, now: number): void {
    const token = this.sampling.next(logits, this.place);
    if (token === null) {
      this.end('stop', null);
      return;
    }
    this.push(token);
    this.conclude(token);
    this.count(now);
  }

  /** Adds a token, and returns the text that it completes. */
  protected push({ id, logprobs, healed }: SampledToken): string {
    const { request } = this;
    const { topLogprobs, minTokens } = request.submission;
    const { tokenBytes } = this.context;
    this.history.push(id);
    this.score += logprobs?.logprob ?? 0;
    const visible = request.shows(id, tokenBytes);
    const bytesOf = (listed: number) => wireBytes(tokenBytes, listed, healed);
    const sendsLogprob = logprobs !== null && topLogprobs !== null;
    const logprob = sendsLogprob ? wireTokenLogprob(bytesOf, id, logprobs, !visible) : null;
    const armed = !request.ends(id) && this.length >= minTokens;
    return this.output.push({ id, logprob, visible, armed, skip: healed.length });
  }

  /** Ends the sequence if its last token or a stop ends it, else tells the constraint. */
  protected conclude(token: SampledToken): void {
    const { request, output } = this;
    if (request.ends(token.id)) this.end('stop', request.stopTokenIds.has(token.id) ? token.id : null);
    else if (output.stop !== null) this.end('stop', output.stop);
    else this.sampling.accept(token);
  }

  /** Counts a generated token, and ends the sequence at its limits. */
  protected count(now: number): void {
    this.#startedAt ??= now;
    const { maxGenerationMs } = this.request.submission;
    const isLate = maxGenerationMs !== undefined && now - this.#startedAt >= maxGenerationMs;
    if (this.#finish === null && (this.remaining <= 0 || isLate)) this.end('length', null);
    this.request.countToken(this.queued.choices, now);
  }

  end(reason: FinishReason, stopReason: string | number | null): void {
    this.#finish = { reason, stopReason };
    this.output.end();
  }

  /** Returns the events that are due. */
  publish(now: number, minIntervalMs: number): EventOf<'token' | 'finish'>[] {
    return this.#events.take(this, now, minIntervalMs);
  }
}
