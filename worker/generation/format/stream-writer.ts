import { SSE_DONE, withoutLineSeparators } from '@continuo/shared/framing.ts';
import type { EventOf, GenerationEvent, Usage } from '@continuo/shared/generation.ts';
import type { ResponseOptions } from '../../dialects/parsed-completion.ts';
import { type ChoiceDelta, ChoiceDeltas } from './choice-deltas.ts';
import { choiceJson, type Envelope, headJson, type Trailer, tailJson } from './completion-json.ts';

interface StreamParts {
  readonly options: ResponseOptions;
  readonly envelope: Envelope;
  readonly prompts: number;
  /** Per prompt. */
  readonly choices: number;
}

/** Writes the events of one generation as server-sent events. */
export class StreamWriter {
  readonly #options: ResponseOptions;
  readonly #usage: () => Usage;
  readonly #deltas: ChoiceDeltas;
  /** Start of each chunk, up to its choices. */
  readonly #head: string;
  #unfinished: number;
  /** The last delta of the last choice, held back until the totals for it are known. */
  #last: ChoiceDelta | null = null;

  /** @param usage returns the usage so far, including the events that are being written */
  constructor({ options, envelope, prompts, choices }: StreamParts, usage: () => Usage) {
    this.#options = options;
    this.#usage = usage;
    this.#deltas = new ChoiceDeltas(options, choices);
    this.#head = `data: ${headJson(envelope)}`;
    this.#unfinished = prompts * choices;
  }

  /** Returns the SSE text of events that arrived together; '' if they add nothing to the stream. */
  write(events: readonly GenerationEvent[]): string {
    return withoutLineSeparators(
      events.map((event) => (event.type === 'done' ? this.#end(event) : this.#event(event))).join(''),
    );
  }

  #event(event: GenerationEvent): string {
    return this.#deltas
      .of(event)
      .map((delta) => {
        if (delta.finish) this.#unfinished -= 1;
        if (delta.finish && this.#unfinished === 0 && this.#closesWithTotals) {
          this.#last = delta;
          return '';
        }
        return this.#chunk(delta, this.#running());
      })
      .join('');
  }

  get #closesWithTotals(): boolean {
    return this.#options.streamUsage === 'last-choice' || this.#options.timings;
  }

  /** `usage` before the end: absent, null if a chunk with the total follows, or the usage so far. */
  #running(): Trailer {
    switch (this.#options.streamUsage) {
      case 'final':
        return { usage: null };
      case 'continuous':
        return { usage: this.#usage() };
      default:
        return {};
    }
  }

  #end(done: EventOf<'done'>): string {
    const { streamUsage, timings } = this.#options;
    const totals: Trailer = timings ? { timings: done } : {};
    const usage = done.usage;
    const last =
      this.#last === null
        ? ''
        : this.#chunk(
            this.#last,
            streamUsage === 'last-choice' ? { usage, ...totals } : { ...this.#running(), ...totals },
          );
    const summary =
      streamUsage === 'final' || streamUsage === 'continuous' ? this.#chunk(null, { usage }) : '';
    return last + summary + SSE_DONE;
  }

  /** Writes a chunk with one choice, or without choices for null. */
  #chunk(delta: ChoiceDelta | null, trailer: Trailer): string {
    return `${this.#head}${delta === null ? '' : choiceJson(delta, delta.choice)}${tailJson(trailer)}\n\n`;
  }
}
