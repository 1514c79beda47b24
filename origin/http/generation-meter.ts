import type { EventOf, GenerationEvent, Usage } from '@continuo/shared/generation.ts';
import { UsageTally } from '@continuo/shared/usage.ts';
import type { Metrics } from './metrics.ts';

interface MeteredRequest {
  readonly model: string;
  /** Milliseconds, on the clock of the meter. */
  readonly receivedAt: number;
  /** False if one event covers many steps, so that its time says nothing about tokens. */
  readonly stream: boolean;
}

/** Records the metrics of one generation from its events. */
export class GenerationMeter {
  readonly #counters: ReturnType<typeof countersOf>;
  readonly #now: () => number;
  readonly #request: MeteredRequest;
  /** Time and token count of each choice's latest token event. */
  readonly #latest = new Map<number, { readonly time: number; readonly tokens: number }>();
  readonly #tally: UsageTally;
  readonly #standard: Metrics['standard'];
  readonly #recent: Metrics['recent'];
  /** Generated tokens that are in the minutes. */
  #counted = 0;
  /** Choices that have ended. */
  #finished = 0;
  #outcome = 'aborted';

  constructor(metrics: Metrics, now: () => number, request: MeteredRequest) {
    this.#counters = countersOf(metrics, request.model);
    this.#standard = metrics.standard;
    this.#recent = metrics.recent;
    this.#now = now;
    this.#request = request;
    this.#tally = new UsageTally(now);
  }

  /** Usage so far. */
  get usage(): Usage {
    return this.#tally.usage;
  }

  /** `done`, an error code, or `aborted` before the terminal event. */
  get outcome(): string {
    return this.#outcome;
  }

  observe(events: readonly GenerationEvent[]): void {
    const now = this.#now();
    for (const event of events) this.#observe(event, now);
    const { completionTokens } = this.usage;
    this.#recent.addTokens(this.#request.model, completionTokens - this.#counted, now);
    this.#counted = completionTokens;
  }

  #observe(event: GenerationEvent, now: number): void {
    this.#tally.add(event);
    if (event.type === 'started') this.#counters.queueSeconds.observe(event.queueMs / 1000);
    else if (event.type === 'token' && this.#request.stream) this.#token(event, now);
    else if (event.type === 'finish') this.#finished += 1;
    else if (event.type === 'done') {
      this.#perToken(event);
      if (!this.#request.stream) this.#plainResponse(event, now);
      this.#outcome = 'done';
    } else if (event.type === 'error') this.#outcome = event.code;
  }

  /** Records the end of the stream. @param complete the terminal event was written */
  end(complete: boolean): void {
    const { model } = this.#request;
    const { promptTokens, cachedTokens, completionTokens } = this.usage;
    this.#standard.ended(
      model,
      this.#now() - this.#request.receivedAt,
      this.#outcome === 'done' ? '' : this.#outcome,
    );
    this.#counters.completionTokens.inc(completionTokens);
    if (this.#outcome !== 'aborted') {
      this.#counters.promptTokens.inc(promptTokens);
      this.#counters.cachedTokens.inc(cachedTokens);
    }
    if (!complete) this.#counters.aborts.inc({ model });
    else if (this.#outcome !== 'done') this.#counters.failures.inc({ model, code: this.#outcome });
  }

  /** A plain answer ends with its last token, so its first token is `generationMs` earlier. */
  #plainResponse({ usage, timings }: EventOf<'done'>, now: number): void {
    if (usage.completionTokens === 0) return;
    this.#firstToken(now - timings.generationMs);
  }

  #firstToken(at: number): void {
    const { model, receivedAt } = this.#request;
    this.#counters.firstTokenSeconds.observe((at - receivedAt) / 1000);
    this.#standard.firstToken(model, at - receivedAt);
    this.#recent.addFirstToken(model, (at - receivedAt) / 1000, at);
  }

  /** Choices run at the same time, so the time after the first token is that of the mean choice. */
  #perToken({ usage, timings }: EventOf<'done'>): void {
    const tokens = usage.completionTokens / Math.max(1, this.#finished) - 1;
    if (tokens > 0) this.#standard.perToken(this.#request.model, timings.generationMs / tokens);
  }

  /** Spreads the time between two events evenly over the tokens of the second one. */
  #token({ choice, completionTokens: tokens }: EventOf<'token'>, now: number): void {
    const before = this.#latest.get(choice);
    if (this.#latest.size === 0) this.#firstToken(now);
    if (before !== undefined) {
      const gap = (now - before.time) / (tokens - before.tokens);
      for (let token = before.tokens; token < tokens; token++) {
        this.#counters.interTokenSeconds.observe(gap / 1000);
      }
    }
    this.#latest.set(choice, { time: now, tokens });
  }
}

/** Resolves the labels once, because some counters change per token. */
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
