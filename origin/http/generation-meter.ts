import type { EventOf, GenerationEvent, Usage } from '../../shared/generation.ts';
import { UsageTally } from '../../shared/usage-tally.ts';
import type { Metrics } from './metrics.ts';

export interface MeteredRequest {
  readonly model: string;
  /** Milliseconds of the clock that the meter is given. */
  readonly receivedAt: number;
  /** False where the events of many steps come as one, whose time says nothing about tokens. */
  readonly stream: boolean;
}

/** Watches the events of one generation for /metrics and the log. */
export class GenerationMeter {
  readonly #counters: ReturnType<typeof countersOf>;
  readonly #now: () => number;
  readonly #request: MeteredRequest;
  /** Of each choice the time of its latest token event and the tokens until then. */
  readonly #latest = new Map<number, { readonly time: number; readonly tokens: number }>();
  readonly #tally: UsageTally;
  #outcome = 'aborted';

  constructor(metrics: Metrics, now: () => number, request: MeteredRequest) {
    this.#counters = countersOf(metrics, request.model);
    this.#now = now;
    this.#request = request;
    this.#tally = new UsageTally(now);
  }

  /** Until now, also where nobody has said what it came to. */
  get usage(): Usage {
    return this.#tally.usage;
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
    this.#tally.add(event);
    if (event.type === 'started') this.#counters.queueSeconds.observe(event.queueMs / 1000);
    else if (event.type === 'token' && this.#request.stream) this.#token(event, now);
    else if (event.type === 'done') {
      if (!this.#request.stream) this.#plainAnswer(event, now);
      this.#outcome = 'done';
    } else if (event.type === 'error') this.#outcome = event.code;
  }

  /** The stream is over: counts its tokens, and whether its reader left or it ended with an error. */
  streamed(heardItsEnd: boolean): void {
    const { model } = this.#request;
    const { promptTokens, cachedTokens, completionTokens } = this.usage;
    this.#counters.completionTokens.inc(completionTokens);
    if (this.#outcome !== 'aborted') {
      this.#counters.promptTokens.inc(promptTokens);
      this.#counters.cachedTokens.inc(cachedTokens);
    }
    if (!heardItsEnd) this.#counters.aborts.inc({ model });
    else if (this.#outcome !== 'done') this.#counters.failures.inc({ model, code: this.#outcome });
  }

  /** It ends with its last token. */
  #plainAnswer({ usage, timings }: EventOf<'done'>, now: number): void {
    if (usage.completionTokens === 0) return;
    const firstTokenAt = now - timings.generationMs;
    this.#counters.firstTokenSeconds.observe((firstTokenAt - this.#request.receivedAt) / 1000);
  }

  /** Tokens that come as one event are taken to have come evenly. */
  #token({ choice, completionTokens: tokens }: EventOf<'token'>, now: number): void {
    const before = this.#latest.get(choice);
    if (this.#latest.size === 0)
      this.#counters.firstTokenSeconds.observe((now - this.#request.receivedAt) / 1000);
    if (before !== undefined) {
      const gap = (now - before.time) / (tokens - before.tokens);
      for (let token = before.tokens; token < tokens; token++) {
        this.#counters.interTokenSeconds.observe(gap / 1000);
      }
    }
    this.#latest.set(choice, { time: now, tokens });
  }
}

/** Looked up once: some count every token. */
const countersOf = (metrics: Metrics, model: string) => ({
  aborts: metrics.aborts,
  failures: metrics.failures,
  promptTokens: metrics.promptTokens.labels({ model }),
  cachedTokens: metrics.cachedTokens.labels({ model }),
  completionTokens: metrics.completionTokens.labels({ model }),
  queueSeconds: metrics.queueSeconds.labels({ model }),
  firstTokenSeconds: metrics.firstTokenSeconds.labels({ model }),
  interTokenSeconds: metrics.interTokenSeconds.labels({ model }),
});
