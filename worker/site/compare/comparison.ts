import { type Signal, signal } from '@preact/signals';
import type { Connection } from '../api/client.ts';
import { streamCompletion, type Usage } from '../api/completion-stream.ts';
import { RequestFailure } from '../api/request-failure.ts';
import { type WholeChoice, WholeChoices } from '../api/whole-choices.ts';

/** How one side is requested. */
export interface SideSettings {
  readonly model: string;
  /** Null = the tenant's own dialect. */
  readonly dialect: string | null;
  readonly parameters: Readonly<Record<string, unknown>>;
}

/** What both sides have in common. */
export interface Subject {
  readonly prompt: string;
  /** Samples per side. */
  readonly n: number;
}

/** The samples of one side so far. */
export interface SideAnswer {
  readonly samples: readonly WholeChoice[];
  readonly usage: Usage | null;
  readonly running: boolean;
  readonly failure: RequestFailure | null;
}

const NOTHING: SideAnswer = { samples: [], usage: null, running: false, failure: null };

/** Time between two updates of the view, in milliseconds. */
const UPDATE_MS = 100;
/** Alternatives per token that every dialect allows. */
const LOGPROBS = 5;

/** Requests the samples of one side. */
export class Side {
  readonly answer: Signal<SideAnswer> = signal(NOTHING);
  #running: AbortController | null = null;

  stop = (): void => this.#running?.abort();

  clear(): void {
    this.stop();
    this.answer.value = NOTHING;
  }

  /** Replaces the answer. Failures become part of it. */
  async run(connection: Connection, settings: SideSettings, { prompt, n }: Subject): Promise<void> {
    this.stop();
    const running = new AbortController();
    this.#running = running;
    const arrived = new WholeChoices(n);
    const show = (state: Partial<SideAnswer>) => {
      if (this.#running !== running) return;
      const samples = arrived.choices.filter(
        ({ text, finishReason }) => text !== '' || finishReason !== null,
      );
      this.answer.value = { ...NOTHING, samples, usage: arrived.usage, ...state };
    };
    const timer = setInterval(() => show({ running: true }), UPDATE_MS);
    show({ running: true });
    const body = {
      ...settings.parameters,
      ...{ model: settings.model, prompt, n, logprobs: LOGPROBS, return_token_ids: true },
    };
    try {
      const updates = streamCompletion({ ...connection, dialect: settings.dialect }, body, running.signal);
      for await (const update of updates) arrived.add(update);
      show({});
    } catch (thrown) {
      show({ failure: running.signal.aborted ? null : failureOf(thrown) });
    } finally {
      clearInterval(timer);
    }
  }
}

const failureOf = (thrown: unknown): RequestFailure =>
  thrown instanceof RequestFailure ? thrown : new RequestFailure('unreachable', String(thrown));

/** Returns the sum of the logprobs of a sample; null if a token has none. */
export const logLikelihood = ({ tokens }: WholeChoice): number | null =>
  tokens.length === 0
    ? null
    : tokens.reduce<number | null>(
        (sum, { logprob }) => (sum === null || logprob === null ? null : sum + logprob),
        0,
      );
