import { SSE_DONE } from '../framing.ts';
import type { EventOf, GenerationEvent, Usage } from '../generation.ts';
import type { AnswerForm, Envelope } from './answer-form.ts';
import { type ChoiceDelta, ChoiceDeltas } from './choice-deltas.ts';
import { ChunkWriter, type Trailer } from './openai-completions.ts';

export interface StreamParts {
  readonly answer: AnswerForm;
  readonly envelope: Envelope;
  readonly prompts: number;
  /** Per prompt. */
  readonly choices: number;
}

/** Writes the events of one generation as its caller reads them: SSE. Runs wherever the stream is written. */
export class StreamWriter {
  readonly #answer: AnswerForm;
  readonly #usage: () => Usage;
  readonly #deltas: ChoiceDeltas;
  readonly #chunks: ChunkWriter;
  #unfinished: number;
  /** The last choice's last delta, kept until the totals that belong on it are known. */
  #last: ChoiceDelta | null = null;

  /** @param usage so far, the events that are being written included */
  constructor({ answer, envelope, prompts, choices }: StreamParts, usage: () => Usage) {
    this.#answer = answer;
    this.#usage = usage;
    this.#deltas = new ChoiceDeltas(answer, choices);
    this.#chunks = new ChunkWriter(envelope);
    this.#unfinished = prompts * choices;
  }

  /** The SSE text of events that arrived together; '' when none of them shows. */
  write(events: readonly GenerationEvent[]): string {
    return events.map((event) => (event.type === 'done' ? this.#end(event) : this.#event(event))).join('');
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
        return this.#data(delta, this.#running());
      })
      .join('');
  }

  get #closesWithTotals(): boolean {
    return this.#answer.streamUsage === 'last-choice' || this.#answer.timings;
  }

  /** `usage` of chunks before the end: absent, null when a chunk with the total follows, or the count so far. */
  #running(): Trailer {
    switch (this.#answer.streamUsage) {
      case 'final':
        return { usage: null };
      case 'continuous':
        return { usage: this.#usage() };
      default:
        return {};
    }
  }

  #end(done: EventOf<'done'>): string {
    const { streamUsage, timings } = this.#answer;
    const totals: Trailer = timings ? { timings: done } : {};
    const usage = done.usage;
    const last =
      this.#last === null
        ? ''
        : this.#data(
            this.#last,
            streamUsage === 'last-choice' ? { usage, ...totals } : { ...this.#running(), ...totals },
          );
    const summary =
      streamUsage === 'final' || streamUsage === 'continuous' ? this.#data(null, { usage }) : '';
    return last + summary + SSE_DONE;
  }

  #data(delta: ChoiceDelta | null, trailer: Trailer): string {
    return `data: ${this.#chunks.chunk(delta, trailer)}\n\n`;
  }
}
