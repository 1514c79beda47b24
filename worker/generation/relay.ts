import { toApiError } from '@continuo/shared/errors.ts';
import { SSE_DONE, SSE_KEEP_ALIVE, sseData } from '@continuo/shared/framing.ts';
import type { GenerationEvent } from '@continuo/shared/generation.ts';
import { inTime } from '@continuo/shared/time-limit.ts';
import { reportBug } from '../http/access-log.ts';
import type { RequestContext } from '../http/request-context.ts';
import { errorBody, eventStreamResponse } from '../http/responses.ts';
import { SilenceTimer } from '../timers/silence-timer.ts';
import { StreamWriter } from './format/stream-writer.ts';
import { doneOf, type Generation } from './generation.ts';

/**
 * Returns the generation as server-sent events. The response begins with the first events, or after
 * EARLY_ANSWER_MS.
 * @throws ApiError if the generation failed before
 */
export async function streamResponse(
  generation: Generation,
  context: RequestContext,
  format: StreamFormat = OPENAI_FORMAT,
): Promise<Response> {
  const { settings, timers, waitUntil } = context;
  await inTime(generation.first, { after: timers.after, ms: settings.EARLY_ANSWER_MS });
  const { readable, writable } = new IdentityTransformStream();
  waitUntil(relay(generation, context, writable.getWriter(), format));
  return eventStreamResponse(readable);
}

/** Turns events that arrived together into SSE text; '' if they add nothing to the stream. */
interface EventWriter {
  write(events: readonly GenerationEvent[]): string;
}

interface StreamFormat {
  writerOf(generation: Generation): EventWriter;
  /** Follows the event of a failure. */
  readonly end: string;
}

const OPENAI_FORMAT: StreamFormat = {
  writerOf({ parsed: { response, generation }, envelope, tally }) {
    const { prompts, choices } = generation;
    const parts = { options: response, envelope, prompts: prompts.length, choices };
    return new StreamWriter(parts, () => tally.usage);
  },
  end: SSE_DONE,
};

/**
 * Relays one stream: one write to the client per read from the upstream. Nothing is read before the client
 * has taken the last write, so a slow client slows the upstream. A failure is one error event, then the
 * format's end.
 */
async function relay(
  generation: Generation,
  context: RequestContext,
  client: WritableStreamDefaultWriter<Uint8Array>,
  format: StreamFormat,
): Promise<void> {
  const { settings, now, timers } = context;
  const encoder = new TextEncoder();
  const write = (text: string): Promise<void> => client.write(encoder.encode(text));
  const silence = new SilenceTimer(now, timers.after, () => {
    silence.begin(settings.KEEP_ALIVE_MS);
    write(SSE_KEEP_ALIVE).catch(() => generation.cancel());
  });
  const nextText = textsOf(generation, context, format);
  silence.begin(settings.KEEP_ALIVE_MS);
  try {
    for (let last = false; !last; ) {
      const next = await nextText();
      last = next.last;
      // Heartbeats and held-back tokens do not reach the client, so its silence goes on.
      if (next.text === '') continue;
      silence.end();
      await write(next.text);
      silence.begin(settings.KEEP_ALIVE_MS);
    }
    await client.close();
  } catch {
    // Only a disconnected client makes a write fail.
    generation.cancel();
  } finally {
    silence.stop();
  }
}

/** Returns a function for the texts of a stream, one after the other. It never fails. */
function textsOf(generation: Generation, context: RequestContext, format: StreamFormat) {
  /** Null until the first events have arrived. */
  let writer: EventWriter | null = null;
  return async (): Promise<{ readonly text: string; readonly last: boolean }> => {
    try {
      const events = await (writer ? generation.next() : generation.first);
      writer ??= format.writerOf(generation);
      return { text: writer.write(events), last: doneOf(events) !== undefined };
    } catch (thrown) {
      const error = toApiError(thrown);
      if (error !== thrown) reportBug(thrown, context);
      generation.fail(error);
      const body = errorBody(error, context.reply.dialect.errorCode);
      return { text: sseData(body) + format.end, last: true };
    }
  };
}
