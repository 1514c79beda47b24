import { type LogprobRow, MAX_TOP_LOGPROBS } from '@continuo/shared/logprob.ts';
import type { EmbeddedImage, LogitRows } from '../../model/model-runner.ts';
import { tokenLogprob, tokenRank } from '../../sampling/logprobs.ts';
import type { StoredPrompt } from '../kv/prefix-store.ts';
import { PromptLogprobs } from '../kv/prompt-logprobs.ts';
import type { Snapshot } from '../kv/state-snapshots.ts';
import type { PromptResult } from '../messages.ts';
import type { WantedLogits } from '../scheduling/step-plan.ts';
import { Healing } from '../text/healing.ts';
import { type OpenRequest, type QueuedSequence, storablePositions } from './open-request.ts';
import type { SamplingContext } from './sequence-sampling.ts';

/** A prompt in prefill, shared by the sequences of it that have been admitted so far. */
export class PromptPrefill {
  readonly request: OpenRequest;
  readonly promptIndex: number;
  readonly tokens: Int32Array;
  readonly images: readonly EmbeddedImage[];
  readonly wantedLogits: WantedLogits;
  /** First position whose logits count for the logprobs of the prompt. */
  readonly logprobsFrom: number;
  readonly sequences: QueuedSequence[];
  /** −1 until its first chunk is scheduled: a later assignment can find more in the prefix cache. */
  slot = -1;
  /** Positions whose KV is in the slot. */
  computed = 0;
  /** The store has more of its chunks than are in the slot. */
  restores = false;
  /** Its chunks in the prefix store; null until it has a slot, or without a store. */
  stored: StoredPrompt | null = null;
  /** Positions of which the store had chunks then. */
  storedBefore = 0;
  /** Time of its first chunk. */
  startedAt = Number.POSITIVE_INFINITY;
  /** Of its last position, once some of its sequences have started and others have not; else null. */
  logits: Float32Array | null = null;
  /** The state of its slot where healing may begin, and at its end; null as long as they are not computed. */
  healedState: Snapshot | null = null;
  endState: Snapshot | null = null;
  /** A shorter prompt has just computed a chunk before it. */
  passed = false;

  /** The request wants the `prompt` event, and no earlier choice has sent it. */
  readonly sendsEvent: boolean;
  /** Logprobs of the prompt's tokens after `logprobsFrom`; null if not wanted. */
  readonly logprobs: PromptLogprobs | null;
  /** Null if none of its tokens is chosen again. */
  readonly healing: Healing | null;
  /** Of the tokens that have rows, so far. */
  readonly #rows: LogprobRow[] = [];
  /** First token that the `prompt` event reports. */
  readonly #echoFrom: number;
  readonly #chunk: number;
  readonly #hasStates: boolean;

  /**
   * @param chunk positions of a prefill chunk
   * @param storesLogprobs whether the prefix store keeps logprobs of prompts
   * @param hasStates whether slots have states beside their KV
   */
  constructor(first: QueuedSequence, chunk: number, storesLogprobs: boolean, hasStates = false) {
    const { request, promptIndex } = first;
    const { tokens, maxTokens, logprobsFrom = 0, echoFrom = 0, healFrom } = request.prompt(promptIndex);
    const { cachePrompt, echo, promptTopLogprobs } = request.submission;
    const wantsLogprobs = promptTopLogprobs !== null;
    this.request = request;
    this.promptIndex = promptIndex;
    this.tokens = tokens;
    this.images = request.images(promptIndex);
    this.sequences = [first];
    this.wantedLogits = request.wantedLogits(promptIndex);
    this.logprobsFrom = logprobsFrom;
    this.#echoFrom = echoFrom;
    this.#chunk = chunk;
    this.#hasStates = hasStates;
    this.healing = healFrom === undefined || maxTokens === 0 ? null : new Healing(tokens, healFrom);
    this.sendsEvent = (echo || wantsLogprobs) && !request.hasStarted(promptIndex);
    const top = storesLogprobs && cachePrompt ? MAX_TOP_LOGPROBS : (promptTopLogprobs ?? 0);
    const skipped = logprobsFrom - (logprobsFrom % chunk);
    this.logprobs =
      wantsLogprobs && this.sendsEvent
        ? new PromptLogprobs(tokens.length - skipped, top, undefined, skipped)
        : null;
  }

  /** First position whose logits are needed. */
  get logitsFrom(): number {
    const first = this.wantedLogits === 'all' ? this.logprobsFrom : this.tokens.length - 1;
    return this.healing === null ? first : Math.min(first, this.healing.from - 1);
  }

  /** Positions at the prompt's start that may come from a cache and stay in the slot. */
  get fixed(): number {
    return this.healing === null ? this.tokens.length : this.healing.from - 1;
  }

  get done(): boolean {
    return this.computed === this.tokens.length;
  }

  /** Goes before longer prompts. */
  get isShort(): boolean {
    return this.request.isShort(this.promptIndex, this.computed, this.#chunk);
  }

  /** Its tokens have rows of logprobs, which are not stored. */
  get wantsRows(): boolean {
    return this.request.submission.logprobRows?.prompt === true;
  }

  /** A device may score its tokens: nothing else is needed of their logits. */
  get isScorable(): boolean {
    return this.logprobs !== null && !this.wantsRows && this.healing === null;
  }

  /** False if the prompt is only evaluated. */
  get generates(): boolean {
    return this.request.prompt(this.promptIndex).maxTokens > 0;
  }

  /** True if the request's time for its prompt is over. A prompt that is only evaluated has no limit. */
  isLate(now: number): boolean {
    const { maxPromptMs } = this.request.submission;
    return maxPromptMs !== undefined && this.wantedLogits === 'last' && now - this.startedAt >= maxPromptMs;
  }

  /** Positions at the prompt's start with KV for the prefix store: those before the first image. */
  get storable(): number {
    const storable = storablePositions(this.request.submission, this.request.prompt(this.promptIndex));
    // The chunk where healing begins is computed in two runs, so its bits are not those of other prompts.
    return Math.min(storable, this.#chunk * Math.floor(this.#splitAt / this.#chunk));
  }

  /** Position where a run must end, because sequences may go back to its state; Infinity = none. */
  get #splitAt(): number {
    return this.#hasStates && this.healing !== null ? this.healing.from : Number.POSITIVE_INFINITY;
  }

  /** The tokens that runs may compute now: all, or those before the ones that healing may choose again. */
  get runnable(): Int32Array {
    return this.computed < this.#splitAt ? this.tokens.subarray(0, this.#splitAt) : this.tokens;
  }

  /**
   * Takes the results of positions computed … end − 1.
   * @param rows of the chunk's wanted positions
   */
  advance(end: number, rows: LogitRows, context: SamplingContext): void {
    if (this.logprobs !== null) this.#addLogprobs(this.logprobs, end, rows, context);
    if (this.healing !== null) {
      const firstRow = this.wantedLogits === 'all' ? this.computed : Math.max(this.computed, this.logitsFrom);
      for (let at = Math.max(this.computed, this.healing.from - 1); at < end; at++) {
        this.healing.add(rows.row(at - firstRow));
      }
    }
    this.computed = end;
  }

  #addLogprobs(logprobs: PromptLogprobs, end: number, rows: LogitRows, { workspace }: SamplingContext): void {
    const last = Math.min(end, this.tokens.length - 1);
    for (let at = Math.max(this.computed, this.logprobsFrom); at < last; at++) {
      const id = this.tokens[at + 1]!;
      const score = rows.score(at - this.computed, logprobs.top);
      if (score !== null) {
        logprobs.set(at + 1, score);
        continue;
      }
      const logits = rows.row(at - this.computed);
      const scored = tokenLogprob(logits, id, logprobs.top, workspace);
      logprobs.set(at + 1, { ...scored, rank: tokenRank(id, workspace) });
      const reported =
        this.wantsRows && at + 1 >= this.#echoFrom
          ? this.request.row(logits, this.request.submission.choices, workspace)
          : null;
      if (reported !== null) this.#rows.push(reported);
    }
  }

  /** What was computed of a prompt that is done. */
  get result(): PromptResult {
    const { logprobs, promptIndex: prompt } = this;
    if (logprobs === null) return { type: 'prompt', prompt };
    const { bytes, top, first } = logprobs;
    return { type: 'prompt', prompt, scores: { bytes, top, first, rows: this.#rows } };
  }
}
