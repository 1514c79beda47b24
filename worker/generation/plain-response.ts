import { toApiError } from '@continuo/shared/errors.ts';
import { withoutLineSeparators } from '@continuo/shared/framing.ts';
import { inTime } from '@continuo/shared/time-limit.ts';
import { reportBug } from '../http/access-log.ts';
import type { RequestContext } from '../http/request-context.ts';
import { jsonText } from '../http/responses.ts';
import { completionFormat, type PlainFormat } from './format/completion-format.ts';
import { doneOf, type Generation } from './generation.ts';

/** JSON allows white space before a value. */
const SPACE = new Uint8Array([0x20]);

export type ChooseFormat = (generation: Generation) => PlainFormat;

/**
 * Returns one JSON body when the generation has ended. After EARLY_ANSWER_MS, the response begins with white
 * space. The platform notices a client that closed its connection only when it writes; a reset connection
 * aborts the request's signal at any time. A request with a constraint or images begins only when the
 * upstream has checked them, so that an invalid one gets its 400. A client that closes its connection before
 * that is noticed afterwards; nothing is generated until then.
 * @throws ApiError if the generation failed before the response began
 */
export async function plainResponse(
  generation: Generation,
  context: RequestContext,
  chooseFormat: ChooseFormat = completionFormat,
): Promise<Response> {
  const body = collect(generation, chooseFormat);
  const { settings, timers, waitUntil } = context;
  const early = await inTime(body, { after: timers.after, ms: settings.EARLY_ANSWER_MS });
  if (early !== null) return jsonText(early);
  await generation.checked();
  const { readable, writable } = new IdentityTransformStream();
  waitUntil(writeLate(body, writable.getWriter(), generation.cancel, context));
  return jsonText(readable);
}

async function collect(generation: Generation, chooseFormat: ChooseFormat): Promise<string> {
  try {
    const first = await generation.first;
    const format = chooseFormat(generation);
    for (let events = first; ; events = await generation.next()) {
      for (const event of events) format.add(event);
      const done = doneOf(events);
      if (done) return withoutLineSeparators(format.end(done));
    }
  } catch (thrown) {
    generation.fail(toApiError(thrown));
    throw thrown;
  }
}

/**
 * Writes white space until the body is known. A failure breaks the connection, so that no client takes it for
 * a response.
 */
async function writeLate(
  body: Promise<string>,
  client: WritableStreamDefaultWriter<Uint8Array>,
  cancel: () => void,
  context: RequestContext,
): Promise<void> {
  const { timers, settings } = context;
  let ended = false;
  let cancelNext = (): void => {};
  const writeSpace = (): void => {
    client.write(SPACE).then(() => {
      if (!ended) cancelNext = timers.after(settings.KEEP_ALIVE_MS, writeSpace);
    }, cancel);
  };
  writeSpace();
  let text: string;
  try {
    text = await body;
  } catch (thrown) {
    const error = toApiError(thrown);
    if (error !== thrown) reportBug(thrown, context);
    // workerd takes a retryable error for a lost connection, and logs every other one as an uncaught
    // exception.
    const broken = Object.assign(new Error('The completion has failed.'), { retryable: true });
    await client.abort(broken).catch(() => {});
    return;
  } finally {
    ended = true;
    cancelNext();
  }
  // Only a disconnected client makes a write fail.
  await client.write(new TextEncoder().encode(text)).catch(() => {});
  await client.close().catch(() => {});
}
