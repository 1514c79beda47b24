import { type Signal, signal } from '@preact/signals';
import { type Connection, requestJson } from '../api/client.ts';
import { type FailureKind, failureFrom, type RequestFailure, reasonOf } from '../api/request-failure.ts';
import type { ScoreLine } from './score-lines.ts';
import type { ChoiceScore, LineResult } from './score-results.ts';

/** Requests at the same time. */
const PARALLEL = 4;
/** Shown results change at most this often. */
const SHOW_MS = 100;
/** Used if the server does not say how long to wait. */
const WAIT_MS = 2_000;

/** The line is sent again after a time. */
const WAITS: readonly FailureKind[] = ['rate-limited', 'model-loading', 'overloaded'];
/** Every other line would fail in the same way. */
const STOPS: readonly FailureKind[] = ['no-key', 'key-refused', 'quota-exhausted', 'offline', 'unreachable'];

export type RunState =
  | { readonly name: 'idle' | 'running' | 'stopped' | 'finished' }
  /** @param until Unix milliseconds */
  | { readonly name: 'waiting'; readonly until: number; readonly reason: string }
  | { readonly name: 'failed'; readonly failure: RequestFailure };

interface ScoreResponse {
  readonly data: readonly {
    readonly logprob: number;
    readonly token_count: number;
    readonly byte_count: number;
  }[];
}

/** How a run waits. */
export interface Timing {
  now(): number;
  /** Resolves after a time, or at once if the signal is aborted. */
  sleep(ms: number, signal: AbortSignal): Promise<void>;
}

const TIMING: Timing = {
  now: Date.now,
  sleep: (ms, signal) =>
    new Promise((resolve) => {
      if (signal.aborted) return resolve();
      const timer = setTimeout(resolve, ms);
      signal.addEventListener('abort', () => {
        clearTimeout(timer);
        resolve();
      });
    }),
};

/** Scores lines one after the other, several at a time. A stopped run can continue. */
export class ScoreRun {
  readonly state: Signal<RunState> = signal<RunState>({ name: 'idle' });
  readonly results: Signal<readonly LineResult[]>;
  readonly model: string;
  readonly #timing: Timing;
  readonly #now: LineResult[];
  #shown = 0;
  #stopping = new AbortController();
  /** Until then, nothing is sent. */
  #pausedUntil = 0;

  constructor(model: string, lines: readonly ScoreLine[], timing: Timing = TIMING) {
    this.model = model;
    this.#timing = timing;
    this.#now = lines.map((line) => ({ line, scores: null, fault: null }));
    this.results = signal([...this.#now]);
  }

  stop = (): void => {
    if (!this.isRunning) return;
    this.#stopping.abort();
    this.state.value = { name: 'stopped' };
  };

  get isRunning(): boolean {
    return ['running', 'waiting'].includes(this.state.value.name);
  }

  /** Scores the lines that have no score yet, failed ones included. */
  async start(connection: Connection): Promise<void> {
    if (this.isRunning) return;
    this.#stopping = new AbortController();
    const { signal } = this.#stopping;
    this.state.value = { name: 'running' };
    // All workers take from one iterator.
    const waiting = this.#now.flatMap(({ scores }, index) => (scores === null ? [index] : [])).values();
    const work = async () => {
      for (const index of waiting) {
        if (signal.aborted) return;
        await this.#score(connection, index, signal);
      }
    };
    await Promise.all(Array.from({ length: PARALLEL }, work));
    this.#show(true);
    if (!signal.aborted) this.state.value = { name: 'finished' };
  }

  async #score(connection: Connection, index: number, signal: AbortSignal): Promise<void> {
    const { line } = this.#now[index]!;
    const body = { model: this.model, prompt: line.prompt, continuations: line.choices };
    for (;;) {
      await this.#untilUnpaused(signal);
      if (signal.aborted) return;
      try {
        const { data } = await requestJson<ScoreResponse>(connection, '/v1/score', { body, signal });
        this.#set(index, { line, scores: data.map(scoreOf), fault: null });
        return;
      } catch (thrown) {
        if (signal.aborted) return;
        const failure = failureFrom(thrown, 'server-error');
        if (WAITS.includes(failure.kind)) this.#pause(failure);
        else if (STOPS.includes(failure.kind)) return this.#fail(failure);
        else return this.#set(index, { line, scores: null, fault: reasonOf(failure) });
      }
    }
  }

  #pause(failure: RequestFailure): void {
    const until = this.#timing.now() + (failure.retryAfterMs ?? WAIT_MS);
    this.#pausedUntil = Math.max(this.#pausedUntil, until);
    this.state.value = { name: 'waiting', until: this.#pausedUntil, reason: failure.message };
  }

  async #untilUnpaused(signal: AbortSignal): Promise<void> {
    for (;;) {
      const left = this.#pausedUntil - this.#timing.now();
      if (signal.aborted) return;
      if (left <= 0) break;
      await this.#timing.sleep(left, signal);
    }
    if (this.state.peek().name === 'waiting') this.state.value = { name: 'running' };
  }

  #fail(failure: RequestFailure): void {
    this.#stopping.abort();
    this.state.value = { name: 'failed', failure };
  }

  #set(index: number, result: LineResult): void {
    this.#now[index] = result;
    this.#show(false);
  }

  #show(isLast: boolean): void {
    const now = this.#timing.now();
    if (!isLast && now - this.#shown < SHOW_MS) return;
    this.#shown = now;
    this.results.value = [...this.#now];
  }
}

const scoreOf = ({ logprob, token_count, byte_count }: ScoreResponse['data'][number]): ChoiceScore => ({
  logprob,
  tokens: token_count,
  bytes: byte_count,
});
