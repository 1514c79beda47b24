import { toApiError } from '../../shared/errors.ts';
import { SSE_DONE, SSE_KEEP_ALIVE, sseData } from '../../shared/framing.ts';
import type { EventOf, GenerationEvent } from '../../shared/generation.ts';
import type { RequestContext } from '../context.ts';
import type { CompletionCall } from '../dialects/completion-call.ts';
import { reportBug } from '../http/bug-report.ts';
import { errorBody, eventStreamResponse, jsonText } from '../http/responses.ts';
import { SilenceTimer } from '../timers/silence-timer.ts';
import { ChoiceCollector } from './format/choice-collector.ts';
import { ChoiceDeltas } from './format/choice-deltas.ts';
import { completionJson, type Envelope } from './format/completion-json.ts';
import { StreamWriter } from './format/stream-writer.ts';
import type { RunningGeneration } from './running-generation.ts';

type Batch = readonly GenerationEvent[];

/** A generation whose first events have arrived. Earlier failures have their own HTTP status. */
export interface StartedGeneration {
  readonly generation: RunningGeneration;
  readonly first: Batch;
  readonly call: CompletionCall;
  readonly envelope: Envelope;
}

const doneOf = (events: Batch): EventOf<'done'> | undefined => {
  const last = events.at(-1);
  return last?.type === 'done' ? last : undefined;
};

/** Returns one JSON body when the generation has ended. @throws ApiError if it failed */
export async function answerPlain(started: StartedGeneration): Promise<Response> {
  try {
    return jsonText(await collect(started));
  } catch (thrown) {
    started.generation.fail(toApiError(thrown));
    throw thrown;
  }
}

async function collect({ generation, first, call, envelope }: StartedGeneration): Promise<string> {
  const { answer } = call;
  const { prompts, choices } = call.generation;
  const deltas = new ChoiceDeltas(answer, choices);
  const collector = new ChoiceCollector(answer, prompts.length, choices);
  for (let events = first; ; events = await generation.next()) {
    for (const event of events) for (const delta of deltas.of(event)) collector.add(delta);
    const done = doneOf(events);
    if (!done) continue;
    const trailer = { usage: done.usage, ...(answer.timings ? { timings: done } : {}) };
    return completionJson(envelope, collector.chosen(), trailer);
  }
}

/** Returns the generation as server-sent events. */
export function answerStream(started: StartedGeneration, context: RequestContext): Response {
  const { readable, writable } = new IdentityTransformStream();
  const relay = new StreamRelay(started, context, writable.getWriter());
  context.waitUntil(relay.run());
  return eventStreamResponse(readable);
}

/**
 * Relays one stream: one write to the client per read from the upstream. Nothing is read before the client has taken
 * the last write, so a slow client slows the upstream. A failure is one error event, then [DONE].
 */
class StreamRelay {
  readonly #generation: RunningGeneration;
  readonly #context: RequestContext;
  readonly #client: WritableStreamDefaultWriter<Uint8Array>;
  readonly #writer: StreamWriter;
  readonly #silence: SilenceTimer;
  readonly #encoder = new TextEncoder();
  /** Read, but not yet written. */
  #first: Batch | null;

  constructor(
    { generation, first, call, envelope }: StartedGeneration,
    context: RequestContext,
    client: WritableStreamDefaultWriter<Uint8Array>,
  ) {
    const { prompts, choices } = call.generation;
    const parts = { answer: call.answer, envelope, prompts: prompts.length, choices };
    this.#generation = generation;
    this.#context = context;
    this.#client = client;
    this.#writer = new StreamWriter(parts, () => generation.tally.usage);
    this.#silence = new SilenceTimer(context.now, context.timers.after, () => this.#keepAlive());
    this.#first = first;
  }

  async run(): Promise<void> {
    const { KEEP_ALIVE_MS } = this.#context.settings;
    this.#silence.begin(KEEP_ALIVE_MS);
    try {
      for (let last = false; !last; ) {
        const next = await this.#next();
        last = next.last;
        // Heartbeats and held-back tokens do not reach the client, so its silence goes on.
        if (next.text === '') continue;
        this.#silence.end();
        await this.#write(next.text);
        this.#silence.begin(KEEP_ALIVE_MS);
      }
      await this.#client.close();
    } catch {
      // Only a disconnected client makes a write fail.
      this.#generation.cancel();
    } finally {
      this.#silence.stop();
    }
  }

  async #next(): Promise<{ readonly text: string; readonly last: boolean }> {
    try {
      const events = this.#first ?? (await this.#generation.next());
      this.#first = null;
      return { text: this.#writer.write(events), last: doneOf(events) !== undefined };
    } catch (thrown) {
      const error = toApiError(thrown);
      if (error !== thrown) reportBug(thrown, this.#context);
      this.#generation.fail(error);
      const body = errorBody(error, this.#context.answer.dialect.errorCode);
      return { text: sseData(body) + SSE_DONE, last: true };
    }
  }

  #keepAlive(): void {
    this.#silence.begin(this.#context.settings.KEEP_ALIVE_MS);
    this.#write(SSE_KEEP_ALIVE).catch(() => this.#generation.cancel());
  }

  #write(text: string): Promise<void> {
    return this.#client.write(this.#encoder.encode(text));
  }
}
