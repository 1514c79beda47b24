import type { Envelope } from '../../shared/answer/answer-form.ts';
import { ChoiceDeltas } from '../../shared/answer/choice-deltas.ts';
import { failedEnd } from '../../shared/answer/error-answer.ts';
import { completionJson } from '../../shared/answer/openai-completions.ts';
import { StreamWriter } from '../../shared/answer/stream-writer.ts';
import { toApiError } from '../../shared/errors.ts';
import { SSE_KEEP_ALIVE } from '../../shared/framing.ts';
import type { EventOf, GenerationEvent } from '../../shared/generation.ts';
import type { RequestContext } from '../context.ts';
import { ChoiceCollector } from '../dialects/choices.ts';
import type { CompletionCall } from '../dialects/completion-call.ts';
import { reportBug } from '../http/bug-report.ts';
import { eventStreamResponse, jsonText } from '../http/responses.ts';
import { SilenceTimer } from '../timers/silence-timer.ts';
import type { Run } from './run.ts';

type Events = readonly GenerationEvent[];
type Controller = ReadableStreamDefaultController<Uint8Array>;

/** A run whose first events have arrived: the moment until which a failure still is an HTTP status of its own. */
export interface Started {
  readonly run: Run;
  readonly first: Events;
  readonly call: CompletionCall;
  readonly envelope: Envelope;
}

const doneOf = (events: Events): EventOf<'done'> | undefined =>
  events.findLast((event) => event.type === 'done');

/** One JSON body, when everything has been generated. @throws ApiError when the generation fails */
export async function answerPlain(started: Started): Promise<Response> {
  try {
    return jsonText(await collect(started));
  } catch (thrown) {
    started.run.fail(toApiError(thrown));
    throw thrown;
  }
}

async function collect({ run, first, call, envelope }: Started): Promise<string> {
  const { answer, generation } = call;
  const deltas = new ChoiceDeltas(answer, generation.choices);
  const collector = new ChoiceCollector(answer, generation.prompts.length, generation.choices);
  for (let events = first; ; events = await run.next()) {
    for (const event of events) for (const delta of deltas.of(event)) collector.add(delta);
    const done = doneOf(events);
    if (!done) continue;
    const trailer = { usage: done.usage, ...(answer.timings ? { timings: done } : {}) };
    return completionJson(envelope, collector.chosen(), trailer);
  }
}

/**
 * Server-sent events, pulled by the reader: nothing is read from the upstream before the client has taken what was
 * written. A failure becomes one error event and then [DONE], never a clean end.
 */
export function answerStream(started: Started, context: RequestContext): Response {
  const body = new ReadableStream(new SseSource(started, context), { highWaterMark: 0 });
  return eventStreamResponse(body);
}

class SseSource implements UnderlyingSource<Uint8Array> {
  readonly #run: Run;
  readonly #context: RequestContext;
  readonly #writer: StreamWriter;
  readonly #encoder = new TextEncoder();
  /** Read, but not yet written. */
  #first: Events | null;
  #silence: SilenceTimer | null = null;

  constructor({ run, first, call, envelope }: Started, context: RequestContext) {
    this.#run = run;
    this.#context = context;
    const { prompts, choices } = call.generation;
    const parts = { answer: call.answer, envelope, prompts: prompts.length, choices };
    this.#writer = new StreamWriter(parts, () => run.tally.usage);
    this.#first = first;
  }

  start(controller: Controller): void {
    const { now, timers, settings } = this.#context;
    const silence = new SilenceTimer(now, timers.after, () => {
      silence.begin(settings.KEEP_ALIVE_MS);
      controller.enqueue(this.#encoder.encode(SSE_KEEP_ALIVE));
    });
    this.#silence = silence;
  }

  async pull(controller: Controller): Promise<void> {
    this.#silence?.begin(this.#context.settings.KEEP_ALIVE_MS);
    try {
      const last = await this.#writeNext(controller);
      this.#silence?.end();
      if (last) this.#close(controller);
    } catch (thrown) {
      const error = toApiError(thrown);
      if (error !== thrown) reportBug(thrown, this.#context);
      this.#run.fail(error);
      controller.enqueue(this.#encoder.encode(failedEnd(error, this.#context.answer.dialect.errorCode)));
      this.#close(controller);
    }
  }

  cancel(): void {
    this.#silence?.stop();
    this.#run.cancel();
  }

  /** One write of whatever came together; true when it is the last one. */
  async #writeNext(controller: Controller): Promise<boolean> {
    for (;;) {
      const events = this.#first ?? (await this.#run.next());
      this.#first = null;
      const text = this.#writer.write(events);
      if (text === '') continue;
      controller.enqueue(this.#encoder.encode(text));
      return doneOf(events) !== undefined;
    }
  }

  #close(controller: Controller): void {
    this.#silence?.stop();
    controller.close();
  }
}
