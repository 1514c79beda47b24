import { toApiError } from '@continuo/shared/errors.ts';
import { SSE_DONE, SSE_KEEP_ALIVE, sseData } from '@continuo/shared/framing.ts';
import type { GenerationEvent } from '@continuo/shared/generation.ts';
import { reportBug } from '../http/access-log.ts';
import type { RequestContext } from '../http/request-context.ts';
import { errorBody, eventStreamResponse } from '../http/responses.ts';
import { SilenceTimer } from '../timers/silence-timer.ts';
import { inTime } from '../timers/time-limit.ts';
import { StreamWriter } from './format/stream-writer.ts';
import { doneOf, type Generation } from './generation.ts';

/**
 * Returns the generation as server-sent events. The response begins with the first events, or after EARLY_ANSWER_MS.
 * @throws ApiError if the generation failed before
 */
export async function answerStream(
  generation: Generation,
  context: RequestContext,
  format: StreamFormat = OPENAI_FORMAT,
): Promise<Response> {
  const { settings, timers, waitUntil } = context;
  await inTime(generation.first, { after: timers.after, ms: settings.EARLY_ANSWER_MS });
  const { readable, writable } = new IdentityTransformStream();
  const relay = new StreamRelay(generation, context, writable.getWriter(), format);
  waitUntil(relay.run());
  return eventStreamResponse(readable);
}

/** Turns events that arrived together into SSE text; '' if they add nothing to the stream. */
interface EventWriter {
  write(events: readonly GenerationEvent[]): string;
}

/** The events of a stream. */
export interface StreamFormat {
  writerOf(generation: Generation): EventWriter;
  /** Follows the event of a failure. */
  readonly end: string;
}

const OPENAI_FORMAT: StreamFormat = {
  writerOf({ call: { answer, generation: asked }, envelope, tally }) {
    const parts = { answer, envelope, prompts: asked.prompts.length, choices: asked.choices };
    return new StreamWriter(parts, () => tally.usage);
  },
  end: SSE_DONE,
};

/**
 * Relays one stream: one write to the client per read from the upstream. Nothing is read before the client has taken
 * the last write, so a slow client slows the upstream. A failure is one error event, then the format's end.
 */
class StreamRelay {
  readonly #generation: Generation;
  readonly #context: RequestContext;
  readonly #client: WritableStreamDefaultWriter<Uint8Array>;
  readonly #format: StreamFormat;
  readonly #silence: SilenceTimer;
  readonly #encoder = new TextEncoder();
  /** Null until the first events have arrived. */
  #writer: EventWriter | null = null;

  constructor(
    generation: Generation,
    context: RequestContext,
    client: WritableStreamDefaultWriter<Uint8Array>,
    format: StreamFormat,
  ) {
    this.#generation = generation;
    this.#context = context;
    this.#client = client;
    this.#format = format;
    this.#silence = new SilenceTimer(context.now, context.timers.after, () => this.#keepAlive());
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
      const events = await (this.#writer ? this.#generation.next() : this.#generation.first);
      this.#writer ??= this.#format.writerOf(this.#generation);
      return { text: this.#writer.write(events), last: doneOf(events) !== undefined };
    } catch (thrown) {
      const error = toApiError(thrown);
      if (error !== thrown) reportBug(thrown, this.#context);
      this.#generation.fail(error);
      const body = errorBody(error, this.#context.answer.dialect.errorCode);
      return { text: sseData(body) + this.#format.end, last: true };
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
