import type { LocalModel } from '@continuo/origin/local/local-model.ts';
import { ApiError, toApiError } from '@continuo/shared/errors.ts';
import { SSE_DONE, sseData } from '@continuo/shared/framing.ts';
import {
  type GenerationEvent,
  type GenerationRequest,
  PROTOCOL_VERSION,
} from '@continuo/shared/generation.ts';
import { toHex } from '@continuo/shared/signing.ts';
import { UsageTally } from '@continuo/shared/usage.ts';
import { DIALECTS, OWN } from '@continuo/worker/dialects/dialect.ts';
import type { ParsedCompletion } from '@continuo/worker/dialects/parsed-completion.ts';
import { parseCompletion } from '@continuo/worker/dialects/request.ts';
import { completionFormat } from '@continuo/worker/generation/format/completion-format.ts';
import { StreamWriter } from '@continuo/worker/generation/format/stream-writer.ts';

/** Answers a completion request by the Worker's own code: fields, texts and errors are the same. */

/** The parts of a response. `head` comes first. */
export interface ResponseParts {
  head(status: number, contentType: string): void;
  text(text: string): void;
}

/** What one visitor may ask of the own browser. */
const BOUNDS = { maxTokens: null, sequences: 64, logprobBytes: 2 ** 26 };
/** A tab may sleep for hours, and then go on. */
const DEADLINE_MS = 2 ** 31;

const JSON_TYPE = 'application/json';

export async function respond(
  local: LocalModel,
  { body, dialect, fingerprint }: { body: string; dialect: string | null; fingerprint: string },
  parts: ResponseParts,
  signal: AbortSignal,
): Promise<void> {
  let begun = false;
  const head = (status: number, contentType: string) => {
    if (!begun) parts.head(status, contentType);
    begun = true;
  };
  try {
    const rules = Object.values(DIALECTS).find(({ name }) => name === dialect) ?? OWN;
    const parsed = parseCompletion(JSON.parse(body), rules, BOUNDS, {});
    const created = Math.floor(Date.now() / 1_000);
    const envelope = {
      id: `cmpl-${toHex(crypto.getRandomValues(new Uint8Array(16)))}`,
      created,
      model: parsed.response.model,
      fingerprint,
    };
    const { stream } = parsed.response;
    const writer = stream ? streamOf(parsed, envelope) : plainOf(parsed, envelope);
    await local.generate(requestOf(parsed, local, envelope.id), signal, (events) => {
      head(200, stream ? 'text/event-stream' : JSON_TYPE);
      parts.text(writer(events));
    });
  } catch (thrown) {
    if (signal.aborted) return;
    const error = toApiError(thrown);
    if (!(thrown instanceof ApiError)) console.error(thrown);
    const text = JSON.stringify(error.envelope());
    if (begun) parts.text(sseData(error.envelope()) + SSE_DONE);
    else {
      head(error.status, JSON_TYPE);
      parts.text(text);
    }
  }
}

const requestOf = (
  { generation }: ParsedCompletion,
  { model }: LocalModel,
  id: string,
): GenerationRequest => ({
  version: PROTOCOL_VERSION,
  requestId: id,
  tenantId: 'visitor',
  weight: 1,
  model: model.id,
  deadlineMs: DEADLINE_MS,
  ...generation,
});

type Envelope = Parameters<typeof completionFormat>[0]['envelope'];
/** Returns the text of events; '' if they add nothing yet. */
type Writer = (events: readonly GenerationEvent[]) => string;

/** An `error` event is thrown, and becomes the last event of the stream. */
function streamOf({ response, generation }: ParsedCompletion, envelope: Envelope): Writer {
  const tally = new UsageTally(Date.now);
  const { prompts, choices } = generation;
  const shape = { options: response, envelope, prompts: prompts.length, choices };
  const writer = new StreamWriter(shape, () => tally.usage);
  return (events) => {
    for (const event of events) tally.add(event);
    return writer.write(events);
  };
}

function plainOf(parsed: ParsedCompletion, envelope: Envelope): Writer {
  const format = completionFormat({ parsed, envelope });
  return (events) => {
    for (const event of events) format.add(event);
    const last = events.at(-1);
    return last?.type === 'done' ? format.end(last) : '';
  };
}
