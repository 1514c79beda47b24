import type { GenerationEvent, Usage } from '../shared/generation.ts';
import type { Metrics } from './metrics.ts';

/** Watches the events of one generation for /metrics and the log. */
export class GenerationMeter {
  readonly #metrics: Metrics;
  readonly #now: () => number;
  readonly #receivedAt: number;
  /** Choice → time of its latest token event. */
  readonly #latest = new Map<number, number>();
  #usage: Usage = { promptTokens: 0, cachedTokens: 0, completionTokens: 0 };
  #outcome = 'aborted';

  /** @param now Milliseconds of any steady or wall clock, the one `receivedAt` was read from */
  constructor(metrics: Metrics, now: () => number, receivedAt: number) {
    this.#metrics = metrics;
    this.#now = now;
    this.#receivedAt = receivedAt;
  }

  get usage(): Usage {
    return this.#usage;
  }

  /** `done`, an error code, or `aborted` while there is no terminal event. */
  get outcome(): string {
    return this.#outcome;
  }

  observe(events: readonly GenerationEvent[]): void {
    const now = this.#now();
    for (const event of events) this.#observe(event, now);
  }

  #observe(event: GenerationEvent, now: number): void {
    if (event.type === 'started') this.#metrics.queueSeconds.observe(event.queueMs / 1000);
    else if (event.type === 'token') this.#token(event.choice, now);
    else if (event.type === 'done') this.#end('done', event.usage);
    else if (event.type === 'error') {
      this.#metrics.failures.inc({ code: event.code });
      this.#end(event.code, event.usage);
    }
  }

  #token(choice: number, now: number): void {
    const before = this.#latest.get(choice);
    if (this.#latest.size === 0) this.#metrics.firstTokenSeconds.observe((now - this.#receivedAt) / 1000);
    if (before !== undefined) this.#metrics.interTokenSeconds.observe((now - before) / 1000);
    this.#latest.set(choice, now);
  }

  #end(outcome: string, usage: Usage | undefined): void {
    this.#outcome = outcome;
    if (!usage) return;
    this.#usage = usage;
    this.#metrics.promptTokens.inc(usage.promptTokens);
    this.#metrics.cachedTokens.inc(usage.cachedTokens);
    this.#metrics.completionTokens.inc(usage.completionTokens);
  }
}
