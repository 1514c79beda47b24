import type { FinishReason, GenerationEvent, Usage } from './generation.ts';
import { UsageCount } from './usage-count.ts';

/** Watches a generation, so that it can be billed wherever it stops. */
export class Tally {
  /** Unix milliseconds of the first generated token. */
  firstTokenAt: number | null = null;
  /** The longest wait of a prompt, in milliseconds. */
  queueMs = 0;
  readonly #now: () => number;
  readonly #count = new UsageCount();

  constructor(now: () => number) {
    this.#now = now;
  }

  add(event: GenerationEvent): void {
    this.#count.add(event);
    if (event.type === 'started') this.queueMs = Math.max(this.queueMs, event.queueMs);
    else if (event.type === 'token') this.firstTokenAt ??= this.#now();
  }

  get finishReasons(): readonly FinishReason[] {
    return this.#count.finishReasons;
  }

  get usage(): Usage {
    return this.#count.usage;
  }
}
