import type { FinishReason, GenerationEvent, Usage } from './generation.ts';

/**
 * What a generation has used so far and how its choices have ended, by its events; both sides count alike, so that both
 * agree wherever it stops.
 */
export class UsageCount {
  readonly finishReasons: FinishReason[] = [];
  /** Choice → tokens generated. */
  readonly #completion = new Map<number, number>();
  #promptTokens = 0;
  #cachedTokens = 0;
  #completionTokens = 0;
  /** The engine's own account; replaces the count. */
  #final: Usage | null = null;

  add(event: GenerationEvent): void {
    switch (event.type) {
      case 'accepted':
        this.#promptTokens = event.promptTokens.reduce((sum, count) => sum + count, 0);
        break;
      case 'started':
        this.#cachedTokens += event.cachedTokens;
        break;
      case 'token':
      case 'finish':
        this.#completionTokens += event.completionTokens - (this.#completion.get(event.choice) ?? 0);
        this.#completion.set(event.choice, event.completionTokens);
        if (event.type === 'finish') this.finishReasons.push(event.reason);
        break;
      case 'done':
      case 'error':
        this.#final = event.usage ?? null;
        break;
    }
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
