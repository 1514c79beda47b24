import { SSE_DONE } from '../../shared/framing.ts';
import type { EventOf, GenerationEvent } from '../../shared/generation.ts';
import { type ChoiceDelta, ChoiceDeltas } from '../dialects/choice-deltas.ts';
import type { CompletionCall } from '../dialects/completion-call.ts';
import { ChunkWriter, type Envelope, type Trailer } from '../dialects/openai-completions.ts';
import type { Tally } from './tally.ts';

/** Writes events as SSE text. */
export class StreamWriter {
  readonly #call: CompletionCall;
  readonly #tally: Tally;
  readonly #deltas: ChoiceDeltas;
  readonly #chunks: ChunkWriter;
  #unfinished: number;
  /** The last choice's last delta, kept until the totals that belong on it are known. */
  #last: ChoiceDelta | null = null;

  constructor(call: CompletionCall, envelope: Envelope, tally: Tally) {
    this.#call = call;
    this.#tally = tally;
    this.#deltas = new ChoiceDeltas(call.answer, call.generation.choices);
    this.#chunks = new ChunkWriter(envelope);
    this.#unfinished = call.generation.prompts.length * call.generation.choices;
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
    return this.#call.answer.streamUsage === 'last-choice' || this.#call.answer.timings;
  }

  /** `usage` of chunks before the end: absent, null when a chunk with the total follows, or the count so far. */
  #running(): Trailer {
    switch (this.#call.answer.streamUsage) {
      case 'final':
        return { usage: null };
      case 'continuous':
        return { usage: this.#tally.usage };
      default:
        return {};
    }
  }

  #end(done: EventOf<'done'>): string {
    const { streamUsage, timings } = this.#call.answer;
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
