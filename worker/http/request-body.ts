import { ApiError } from '../../shared/errors.ts';
import type { RequestContext } from '../context.ts';
import type { Settings } from '../env.ts';

/** What bounds the reading of a body. */
type Reading = Pick<RequestContext, 'settings' | 'timers'>;

type JsonObject = Readonly<Record<string, unknown>>;

function checkMediaType(request: Request): void {
  const type = request.headers.get('content-type')?.split(';')[0]?.trim().toLowerCase() ?? '';
  if (type === 'application/json' || /^application\/[\w.-]+\+json$/.test(type)) return;
  const given = type === '' ? 'none' : `'${type.slice(0, 80)}'`;
  throw new ApiError(
    'unsupported_media_type',
    `Unsupported Content-Type: expected 'application/json', got ${given}.`,
  );
}

/** A few compressed kilobytes may become gigabytes: bodies are taken as they are. */
function checkEncoding({ headers }: Request): void {
  const encoding = headers.get('content-encoding')?.trim() ?? '';
  if (['', 'identity'].includes(encoding.toLowerCase())) return;
  throw new ApiError(
    'unsupported_media_type',
    `Unsupported Content-Encoding: '${encoding.slice(0, 80)}'. Send the body uncompressed.`,
  );
}

const tooLarge = (limit: number): ApiError =>
  new ApiError('request_too_large', `The request body is larger than the limit of ${limit} bytes.`);

/**
 * The body's bytes as text; stops reading as soon as a limit is passed.
 * @throws ApiError 415 when it is compressed, 413 above the size limit, 408 when it arrives too slowly, 400 when it is no
 *   UTF-8 or breaks off
 */
export async function readText(request: Request, { settings, timers }: Reading): Promise<string> {
  checkEncoding(request);
  const { MAX_BODY_BYTES, BODY_TIMEOUT_MS } = settings;
  const claimed = lengthOf(request);
  if (claimed !== null && claimed > MAX_BODY_BYTES) throw tooLarge(MAX_BODY_BYTES);
  if (request.body === null) return '';
  const late = Promise.withResolvers<never>();
  const arrived = timers.after(BODY_TIMEOUT_MS, () =>
    late.reject(new ApiError('request_timeout', 'The request body did not arrive in time.')),
  );
  try {
    if (claimed === null) return await readPieces(request.body, MAX_BODY_BYTES, late.promise);
    return new BodyDecoder().last(await Promise.race([request.arrayBuffer(), late.promise]));
  } catch (thrown) {
    throw thrown instanceof ApiError ? thrown : unreadable('it did not arrive whole');
  } finally {
    arrived();
  }
}

/** A length that HTTP itself keeps the body to; null for one that ends when it ends. */
function lengthOf({ headers }: Request): number | null {
  const claimed = headers.get('content-length');
  return claimed === null || headers.has('transfer-encoding') ? null : Number(claimed);
}

const unreadable = (why: string): ApiError =>
  new ApiError('invalid_json', `We could not parse the JSON body of your request: ${why}.`);

/** @throws ApiError 400 for bytes that are no UTF-8 */
class BodyDecoder {
  readonly #decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: false });

  next(bytes: Uint8Array): string {
    return this.#decode(bytes, true);
  }

  last(bytes?: ArrayBuffer): string {
    return this.#decode(bytes, false);
  }

  #decode(bytes: ArrayBuffer | Uint8Array | undefined, stream: boolean): string {
    try {
      return this.#decoder.decode(bytes, { stream });
    } catch {
      throw unreadable('it is not valid UTF-8');
    }
  }
}

async function readPieces(
  body: ReadableStream<Uint8Array>,
  limit: number,
  late: Promise<never>,
): Promise<string> {
  const reader = body.getReader();
  const decoder = new BodyDecoder();
  let size = 0;
  let text = '';
  let reading = true;
  try {
    for (;;) {
      const { value, done } = await Promise.race([reader.read(), late]);
      reading = false;
      if (done) return text + decoder.last();
      size += value.byteLength;
      if (size > limit) throw tooLarge(limit);
      text += decoder.next(value);
      reading = true;
    }
  } finally {
    // A lock cannot be released while a read is pending.
    if (reading) void reader.cancel().catch(() => {});
    else reader.releaseLock();
  }
}

/** The rest of a refused body is taken up to this many times the limit, and for this long. */
const DRAIN = { times: 2, ms: 1_000 };

/**
 * Takes what is left of a body that was refused, within reason: a client that is still writing when the connection
 * closes sees a broken pipe instead of its error.
 */
export async function drain(request: Request, { MAX_BODY_BYTES }: Settings): Promise<void> {
  if (request.body === null || request.bodyUsed || request.body.locked) return;
  const reader = request.body.getReader();
  const timer = setTimeout(() => void reader.cancel().catch(() => {}), DRAIN.ms);
  try {
    for (let size = 0; size < DRAIN.times * MAX_BODY_BYTES; ) {
      const { value, done } = await reader.read();
      if (done) return;
      size += value.byteLength;
    }
  } catch {
    // The client has gone; nobody waits for the answer.
  } finally {
    clearTimeout(timer);
  }
}

/**
 * The JSON object in the body.
 * @throws ApiError 415 for another media type or encoding, 413 above the size limit, 408 when it arrives too slowly, 400 otherwise
 */
export async function readJsonObject(request: Request, reading: Reading): Promise<JsonObject> {
  checkMediaType(request);
  const text = await readText(request, reading);
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    throw new ApiError('invalid_json', 'We could not parse the JSON body of your request.');
  }
  if (typeof body === 'object' && body !== null && !Array.isArray(body)) return body as JsonObject;
  throw new ApiError('invalid_type', 'Invalid type for the request body: expected a JSON object.');
}
