import { type Signal, signal } from '@preact/signals';
import type { Connection } from '../api/client.ts';
import type { Usage } from '../api/completion-stream.ts';
import type { RequestFailure } from '../api/request-failure.ts';
import { requestChoices, TOKEN_FIELDS, type WholeChoice } from '../api/whole-choices.ts';
import { jointLogprob } from '../tokens/probability.ts';

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
export interface SideResult {
  readonly samples: readonly WholeChoice[];
  readonly usage: Usage | null;
  readonly running: boolean;
  readonly failure: RequestFailure | null;
}

const NOTHING: SideResult = { samples: [], usage: null, running: false, failure: null };

/** Requests the samples of one side. */
export class Side {
  readonly result: Signal<SideResult> = signal(NOTHING);
  #running: AbortController | null = null;

  stop = (): void => this.#running?.abort();

  clear(): void {
    this.stop();
    this.result.value = NOTHING;
  }

  /** Replaces the result. Failures become part of it. */
  async run(connection: Connection, settings: SideSettings, { prompt, n }: Subject): Promise<void> {
    this.stop();
    const running = new AbortController();
    this.#running = running;
    const show = (state: Partial<SideResult>) => {
      if (this.#running === running) this.result.value = { ...this.result.peek(), ...state };
    };
    this.result.value = { ...NOTHING, running: true };
    const failure = await requestChoices(
      { ...connection, dialect: settings.dialect },
      { ...TOKEN_FIELDS, ...settings.parameters, model: settings.model, prompt, n },
      running.signal,
      ({ choices, usage }) =>
        show({
          usage,
          samples: choices.filter(({ text, finishReason }) => text !== '' || finishReason !== null),
        }),
    );
    show({ failure, running: false });
  }
}

/** Returns the sum of the logprobs of a sample; null without tokens, or if one has none. */
export const logLikelihood = ({ tokens }: WholeChoice): number | null =>
  tokens.length === 0 ? null : jointLogprob(tokens);
