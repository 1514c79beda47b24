import type { EventOf, TokenLogprob } from '../../shared/generation.ts';
import type { EmbeddedImage } from '../model/model-runner.ts';
import { tokenLogprob } from '../sampling/logprobs.ts';
import { Utf8Assembler } from '../tokenizer/detokenizer.ts';
import { bytesOf, type TokenBytes } from '../tokenizer/token-bytes.ts';
import type { OpenRequest, QueuedSequence } from './open-request.ts';
import type { PrefillCandidate, WantedLogits } from './scheduler.ts';
import type { SamplingContext } from './sequence.ts';
import { wireTokenLogprob } from './token-logprob.ts';

/** A prompt in prefill, shared by the sequences of it that have been admitted so far. */
export class PromptPrefill implements PrefillCandidate {
  readonly request: OpenRequest;
  readonly promptIndex: number;
  readonly tokens: Int32Array;
  readonly images: readonly EmbeddedImage[];
  /** Depends on the request only, so that later choices of the prompt get the same bits. */
  readonly wantedLogits: WantedLogits;
  readonly sequences: QueuedSequence[];
  /** −1 until its first chunk is scheduled: a later assignment can find more in the prefix cache. */
  slot = -1;
  /** Positions whose KV is in the slot. */
  computed = 0;
  /** Time of its first chunk. */
  startedAt = Number.POSITIVE_INFINITY;

  /** The request wants the `prompt` event, and no earlier choice has sent it. */
  readonly sendsEvent: boolean;
  /** Logprobs of the prompt tokens so far; null if not wanted. */
  readonly #logprobs: TokenLogprob[] | null;

  constructor(first: QueuedSequence) {
    const { request, promptIndex } = first;
    const { tokens, maxTokens } = request.prompt(promptIndex);
    const { echo, promptTopLogprobs } = request.submission;
    const wantsLogprobs = promptTopLogprobs !== null;
    this.request = request;
    this.promptIndex = promptIndex;
    this.tokens = tokens;
    this.images = request.images(promptIndex);
    this.sequences = [first];
    this.wantedLogits = wantsLogprobs ? 'all' : maxTokens === 0 ? 'none' : 'last';
    this.sendsEvent = (echo || wantsLogprobs) && !request.hasStarted(promptIndex);
    this.#logprobs = wantsLogprobs && this.sendsEvent ? [] : null;
  }

  get tenantId(): string {
    return this.request.submission.tenantId;
  }

  get done(): boolean {
    return this.computed === this.tokens.length;
  }

  /** True if the request's time for its prompt is over. A prompt that is only evaluated has no limit. */
  isLate(now: number): boolean {
    const { maxPromptMs } = this.request.submission;
    return maxPromptMs !== null && this.wantedLogits === 'last' && now - this.startedAt >= maxPromptMs;
  }

  /** Cached positions have no logits, so a prompt with logprobs is computed from its start. */
  get mayUseCache(): boolean {
    return this.#logprobs === null;
  }

  /** Positions at the prompt's start whose KV may be kept in the prefix store: those before the first image. */
  get storable(): number {
    if (!this.request.submission.cachePrompt) return 0;
    return this.request.prompt(this.promptIndex).images?.[0]?.at ?? this.tokens.length;
  }

  /**
   * Takes the results of positions computed … end − 1.
   * @param row logits of the chunk's wanted positions; row i predicts the token at position computed + i + 1
   */
  advance(end: number, row: (index: number) => Float32Array, context: SamplingContext): void {
    if (this.#logprobs !== null) this.#computeLogprobs(this.#logprobs, end, row, context);
    this.computed = end;
  }

  #computeLogprobs(
    logprobs: TokenLogprob[],
    end: number,
    row: (index: number) => Float32Array,
    { vocabulary: { tokenBytes }, workspace }: SamplingContext,
  ): void {
    const { skipSpecialTokens, promptTopLogprobs } = this.request.submission;
    const isHidden = (id: number): boolean => skipSpecialTokens && tokenBytes.special[id] === 1;
    if (this.computed === 0) {
      const first = this.tokens[0]!;
      logprobs.push(wireTokenLogprob(tokenBytes, first, null, isHidden(first)));
    }
    for (let at = this.computed; at < Math.min(end, this.tokens.length - 1); at++) {
      const id = this.tokens[at + 1]!;
      const computed = tokenLogprob(row(at - this.computed), id, promptTopLogprobs ?? 0, workspace);
      logprobs.push(wireTokenLogprob(tokenBytes, id, computed, isHidden(id)));
    }
  }

  /** Returns the `prompt` event of a prompt that is done. */
  event(tokenBytes: TokenBytes): EventOf<'prompt'> {
    const event: EventOf<'prompt'> = {
      type: 'prompt',
      prompt: this.promptIndex,
      text: promptText(this.tokens, tokenBytes, this.request.submission.skipSpecialTokens),
      ids: [...this.tokens],
    };
    if (this.#logprobs !== null) event.logprobs = this.#logprobs;
    return event;
  }
}

function promptText(tokens: Int32Array, tokenBytes: TokenBytes, skipSpecialTokens: boolean): string {
  const assembler = new Utf8Assembler();
  let text = '';
  for (const id of tokens) {
    if (!(skipSpecialTokens && tokenBytes.special[id] === 1)) text += assembler.push(bytesOf(tokenBytes, id));
  }
  return text + assembler.end();
}
