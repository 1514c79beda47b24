import { toApiError } from '../shared/errors.ts';
import { SSE_DONE, SSE_KEEP_ALIVE, sseData } from '../shared/framing.ts';
import type { EventOf, GenerationEvent } from '../shared/generation.ts';
import { reportBug } from './bug-report.ts';
import type { RequestContext } from './context.ts';
import { ChoiceDeltas } from './dialects/choice-deltas.ts';
import { ChoiceCollector } from './dialects/choices.ts';
import type { CompletionCall } from './dialects/completion-call.ts';
import { completionJson, type Envelope } from './dialects/openai-completions.ts';
import { errorBody, jsonText } from './http.ts';
import type { Run } from './relay-run.ts';
import { StreamWriter } from './relay-stream.ts';

type Events = readonly GenerationEvent[];

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

const STREAM_HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-cache',
  'x-accel-buffering': 'no',
};

/**
 * Server-sent events, pulled by the reader: nothing is read from the upstream before the client has taken what was
 * written. A failure becomes one error event and then [DONE], never a clean end.
 */
export function answerStream(started: Started, context: RequestContext): Response {
  const { run, first, call, envelope } = started;
  const encoder = new TextEncoder();
  const writer = new StreamWriter(call, envelope, run.tally);
  let awaited: Promise<Events> | null = Promise.resolve(first);

  /** Text for the next write, and whether it is the last. */
  const nextText = async (): Promise<readonly [text: string, last: boolean]> => {
    for (;;) {
      awaited ??= run.next();
      const events = await orSilence(awaited, context.settings.KEEP_ALIVE_MS);
      if (events === null) return [SSE_KEEP_ALIVE, false];
      awaited = null;
      const text = writer.write(events);
      if (text !== '') return [text, doneOf(events) !== undefined];
    }
  };

  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const [text, last] = await nextText();
          controller.enqueue(encoder.encode(text));
          if (last) controller.close();
        } catch (thrown) {
          const error = toApiError(thrown);
          if (error !== thrown) reportBug(thrown, context);
          run.fail(error);
          controller.enqueue(encoder.encode(sseData(errorBody(error, context)) + SSE_DONE));
          controller.close();
        }
      },
      cancel: () => run.cancel(),
    },
    { highWaterMark: 0 },
  );
  return new Response(body, { headers: STREAM_HEADERS });
}

/** What `work` brings, or null when it takes longer than `ms`. */
async function orSilence<T>(work: Promise<T>, ms: number): Promise<T | null> {
  const silence = Promise.withResolvers<null>();
  const timer = setTimeout(() => silence.resolve(null), ms);
  try {
    return await Promise.race([work, silence.promise]);
  } finally {
    clearTimeout(timer);
  }
}
