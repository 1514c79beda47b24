import { type Signal, signal } from '@preact/signals';
import type { Connection } from '../api/client.ts';
import {
  type RemainingLimits,
  type StreamUpdate,
  streamCompletion,
  type Usage,
} from '../api/completion-stream.ts';
import { failureFrom, type RequestFailure } from '../api/request-failure.ts';

export type Phase =
  | { readonly name: 'idle' | 'waiting' | 'streaming' | 'stopped' }
  | {
      readonly name: 'finished';
      readonly reason: string;
      readonly stop: string | number | null;
      /** Whether the model added nothing. */
      readonly isEmpty: boolean;
    }
  | { readonly name: 'failed'; readonly failure: RequestFailure; readonly at: number };

/** Measured by the page, except usage and limits, which the server reports. */
export interface Figures {
  readonly firstTokenMs: number | null;
  readonly tokensPerSecond: number | null;
  readonly tokens: number;
  readonly usage: Usage | null;
  readonly limits: RemainingLimits | null;
}

export type ChoiceUpdate = Extract<StreamUpdate, { type: 'choice' }>;

const NO_FIGURES: Figures = {
  firstTokenMs: null,
  tokensPerSecond: null,
  tokens: 0,
  usage: null,
  limits: null,
};

/** Shown figures change at most this often. */
const SETTLE_MS = 100;

/** Runs one completion at a time and keeps its state and figures. */
export class Generation {
  readonly phase: Signal<Phase> = signal<Phase>({ name: 'idle' });
  readonly figures: Signal<Figures> = signal(NO_FIGURES);
  readonly #now: () => number;
  #running: AbortController | null = null;
  /** Settles when no request runs. */
  ended: Promise<void> = Promise.resolve();

  /** @param now milliseconds */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** Ends the request. The server frees its slot when the connection closes. */
  stop = (): void => this.#running?.abort();

  /**
   * Runs a request to its end, and reports its updates. Failures become the phase `failed`.
   * @param onEnd completes the text before the phase says that it is complete
   */
  run(
    connection: Connection,
    body: Readonly<Record<string, unknown>>,
    onUpdate: (update: StreamUpdate) => void,
    onEnd: (isWhole: boolean) => Promise<void>,
  ): Promise<void> {
    this.ended = this.#run(connection, body, onUpdate, onEnd);
    return this.ended;
  }

  async #run(...[connection, body, onUpdate, onEnd]: Parameters<Generation['run']>): Promise<void> {
    const running = new AbortController();
    this.#running = running;
    this.phase.value = { name: 'waiting' };
    this.figures.value = NO_FIGURES;
    const updates = streamCompletion(connection, body, running.signal);
    const end = await this.#follow(updates, onUpdate).catch(
      (thrown: unknown): Phase => (running.signal.aborted ? { name: 'stopped' } : this.#failed(thrown)),
    );
    await onEnd(end.name === 'finished');
    this.#running = null;
    this.phase.value = end;
  }

  #failed(thrown: unknown): Phase {
    return { name: 'failed', failure: failureFrom(thrown, 'server-error'), at: this.#now() };
  }

  async #follow(
    updates: AsyncIterable<StreamUpdate>,
    onUpdate: (update: StreamUpdate) => void,
  ): Promise<Phase> {
    const start = this.#now();
    let [reason, stop]: [string, string | number | null] = ['stop', null];
    let first: number | null = null;
    let shown = 0;
    let figures: Figures = NO_FIGURES;
    for await (const update of updates) {
      const now = this.#now();
      onUpdate(update);
      if (update.type === 'start') figures = { ...figures, limits: update.limits };
      if (update.type === 'usage')
        figures = { ...figures, usage: update.usage, tokens: update.usage.completionTokens };
      if (update.type === 'choice') {
        if (update.finishReason !== null) [reason, stop] = [update.finishReason, update.stopReason];
        if (first === null && update.text !== '') {
          first = now;
          this.phase.value = { name: 'streaming' };
        }
        const tokens = figures.tokens + (update.promptIds ? 0 : Math.max(1, update.tokens.length));
        const seconds = first === null ? 0 : (now - first) / 1000;
        figures = {
          ...figures,
          tokens,
          firstTokenMs: first === null ? null : first - start,
          tokensPerSecond: seconds > 0 ? (tokens - 1) / seconds : null,
        };
      }
      if (now - shown < SETTLE_MS) continue;
      shown = now;
      this.figures.value = figures;
    }
    this.figures.value = figures;
    return { name: 'finished', reason, stop, isEmpty: first === null };
  }
}
