import type { EventOf, TokenLogprob } from '../../shared/generation.ts';
import type { EmbeddedImage } from '../model/model-runner.ts';
import { tokenLogprob } from '../sampling/logprobs.ts';
import { Utf8Assembler } from '../tokenizer/detokenizer.ts';
import { bytesOf, type TokenBytes } from '../tokenizer/token-bytes.ts';
import type { OpenRequest, PendingSequence } from './open-request.ts';
import type { PrefillCandidate, WantedLogits } from './scheduler.ts';
import type { SamplingContext } from './sequence.ts';
import { tokenEntry } from './token-logprob.ts';

/** A prompt on its way through the model, for all of its choices that have been admitted so far. */
export class PromptPrefill implements PrefillCandidate {
  readonly request: OpenRequest;
  readonly promptIndex: number;
  readonly tokens: Int32Array;
  readonly images: readonly EmbeddedImage[];
  /** Logits this prompt needs: a function of the request alone, so that later choices get the same bits. */
  readonly wanted: WantedLogits;
  readonly sequences: PendingSequence[];
  /** −1 until its first chunk is about to run: the later the seat, the more can be found in the cache. */
  slot = -1;
  computed = 0;

  /** The request wants the `prompt` event, and no earlier choice has brought it. */
  readonly echoes: boolean;
  /** Logprobs of the prompt's tokens so far, when they are wanted in that event. */
  readonly #scored: TokenLogprob[] | null;

  constructor(first: PendingSequence) {
    const { request, promptIndex } = first;
    const { tokens, maxTokens } = request.prompt(promptIndex);
    const { echo, promptLogprobs } = request.submission;
    const scoring = promptLogprobs !== null;
    this.request = request;
    this.promptIndex = promptIndex;
    this.tokens = tokens;
    this.images = request.images(promptIndex);
    this.sequences = [first];
    this.wanted = scoring ? 'all' : maxTokens === 0 ? 'none' : 'last';
    this.echoes = (echo || scoring) && !request.hasStarted(promptIndex);
    this.#scored = scoring && this.echoes ? [] : null;
  }

  get tenantId(): string {
    return this.request.submission.tenantId;
  }

  get done(): boolean {
    return this.computed === this.tokens.length;
  }

  /** Cached positions have no logits, so a prompt that is to be scored takes none. */
  get mayReuse(): boolean {
    return this.#scored === null;
  }

  /** Takes up positions computed … end − 1; where the prompt is scored, row i predicts the token at computed + i + 1. */
  advance(end: number, row: (index: number) => Float32Array, context: SamplingContext): void {
    if (this.#scored !== null) {
      const { tokenBytes } = context.vocabulary;
      const { skipSpecialTokens, promptLogprobs } = this.request.submission;
      const hides = (id: number): boolean => skipSpecialTokens && tokenBytes.special[id] === 1;
      if (this.computed === 0) {
        const first = this.tokens[0]!;
        this.#scored.push(tokenEntry(tokenBytes, first, null, hides(first)));
      }
      for (let at = this.computed; at < Math.min(end, this.tokens.length - 1); at++) {
        const id = this.tokens[at + 1]!;
        const scored = tokenLogprob(row(at - this.computed), id, promptLogprobs ?? 0, context.workspace);
        this.#scored.push(tokenEntry(tokenBytes, id, scored, hides(id)));
      }
    }
    this.computed = end;
  }

  /** The `prompt` event, once everything is computed. */
  event(table: TokenBytes): EventOf<'prompt'> {
    const event: EventOf<'prompt'> = {
      type: 'prompt',
      prompt: this.promptIndex,
      text: promptText(this.tokens, table, this.request.submission.skipSpecialTokens),
      ids: [...this.tokens],
    };
    if (this.#scored !== null) event.tokens = this.#scored;
    return event;
  }
}

function promptText(tokens: Int32Array, table: TokenBytes, skipSpecialTokens: boolean): string {
  const assembler = new Utf8Assembler();
  let text = '';
  for (const id of tokens) {
    if (!(skipSpecialTokens && table.special[id] === 1)) text += assembler.push(bytesOf(table, id));
  }
  return text + assembler.end();
}
