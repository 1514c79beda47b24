import type { FinishReason, GenerationEvent, Usage } from '../shared/generation.ts';

/** Counts what a generation has used, so that it can be billed wherever it stops. */
export class Tally {
  readonly finishReasons: FinishReason[] = [];
  /** Unix milliseconds of the first generated token. */
  firstTokenAt: number | null = null;
  /** The longest wait of a prompt, in milliseconds. */
  queueMs = 0;
  readonly #now: () => number;
  readonly #completion = new Map<number, number>();
  #promptTokens = 0;
  #cachedTokens = 0;
  #completionTokens = 0;
  /** The upstream's own account; replaces the count. */
  #final: Usage | null = null;

  constructor(now: () => number) {
    this.#now = now;
  }

  add(event: GenerationEvent): void {
    switch (event.type) {
      case 'accepted':
        this.#promptTokens = event.promptTokens.reduce((sum, count) => sum + count, 0);
        break;
      case 'started':
        this.#cachedTokens += event.cachedTokens;
        this.queueMs = Math.max(this.queueMs, event.queueMs);
        break;
      case 'token':
        this.firstTokenAt ??= this.#now();
        this.#count(event.choice, event.completionTokens);
        break;
      case 'finish':
        this.finishReasons.push(event.reason);
        this.#count(event.choice, event.completionTokens);
        break;
      case 'done':
      case 'error':
        this.#final = event.usage ?? null;
        break;
    }
  }

  #count(choice: number, tokens: number): void {
    this.#completionTokens += tokens - (this.#completion.get(choice) ?? 0);
    this.#completion.set(choice, tokens);
  }

  get usage(): Usage {
    return (
      this.#final ?? {
        promptTokens: this.#promptTokens,
        cachedTokens: this.#cachedTokens,
        completionTokens: this.#completionTokens,
      }
    );
  }
}
