import { constraintFields } from '@continuo/shared/completion-constraints.ts';
import { errorMessage } from '@continuo/shared/error-details.ts';
import { ApiError } from '@continuo/shared/errors.ts';
import { parseExactly, withDigits } from '@continuo/shared/exact-numbers.ts';
import { isJsonObject, type JsonObject } from '@continuo/shared/json-object.ts';
import { inTime } from '@continuo/shared/time-limit.ts';
import type { Settings } from '../env/settings.ts';
import { complexityFault, fieldWithLoneSurrogate } from './json-limits.ts';
import type { RequestContext } from './request-context.ts';

type ReadLimits = Pick<RequestContext, 'settings' | 'timers' | 'caller' | 'heldBody'>;

/** Fields that may hold a JSON Schema, whose numbers are exact. */
const CONSTRAINTS = Object.keys(constraintFields);

function checkMediaType(request: Request): void {
  const type = request.headers.get('content-type')?.split(';')[0]?.trim().toLowerCase() ?? '';
  if (type === 'application/json' || /^application\/[\w.-]+\+json$/.test(type)) return;
  const given = type === '' ? 'none' : `'${type.slice(0, 80)}'`;
  throw new ApiError(
    'unsupported_media_type',
    `Unsupported Content-Type: expected 'application/json', got ${given}.`,
  );
}

/** Rejects compressed bodies: a few compressed kilobytes may expand to gigabytes. */
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

const bodyTimeout = (): ApiError =>
  new ApiError('request_timeout', 'The request body did not arrive in time.');

/**
 * Reads the body as text, and stops as soon as it exceeds a limit.
 * @throws ApiError 415 if the body is compressed, 413 above the size limit, 503 if the isolate holds too many
 *   bytes, 408 if it arrives too slowly, 400 if it is not UTF-8 or is incomplete
 */
export async function readText(
  request: Request,
  { settings, timers, caller, heldBody }: ReadLimits,
): Promise<string> {
  checkEncoding(request);
  const { MAX_BODY_BYTES, BODY_TIMEOUT_MS } = settings;
  const claimed = lengthOf(request);
  if (claimed !== null && claimed > MAX_BODY_BYTES) throw tooLarge(MAX_BODY_BYTES);
  // Access to `body` costs more than the reading of a short one.
  if (claimed === null && request.body === null) return '';
  const hold = (bytes: number) => heldBody.take(caller.principal?.tenant.id ?? '', bytes);
  const late = Promise.withResolvers<never>();
  const arrived = timers.after(BODY_TIMEOUT_MS, () => late.reject(bodyTimeout()));
  try {
    if (claimed === null) return await readPieces(request.body!, MAX_BODY_BYTES, late.promise, hold);
    hold(claimed);
    return decoded(WHOLE, await Promise.race([request.arrayBuffer(), late.promise]));
  } catch (thrown) {
    throw thrown instanceof ApiError ? thrown : unreadable('the body is incomplete');
  } finally {
    arrived();
  }
}

/** The declared length, which HTTP enforces; null for a chunked body. */
function lengthOf({ headers }: Request): number | null {
  const claimed = headers.get('content-length');
  return claimed === null || headers.has('transfer-encoding') ? null : Number(claimed);
}

/** Returns the bytes of a body as its client declared them; the most that may be read if it did not. */
export const sizeOf = (request: Request, { MAX_BODY_BYTES }: Settings): number =>
  request.body === null ? 0 : Math.min(lengthOf(request) ?? MAX_BODY_BYTES, MAX_BODY_BYTES);

const unreadable = (why: string): ApiError =>
  new ApiError('invalid_json', `We could not parse the JSON body of your request: ${why}.`);

const newDecoder = (): TextDecoder => new TextDecoder('utf-8', { fatal: true, ignoreBOM: false });
/** For whole bodies. It keeps nothing between two of them. */
const WHOLE = newDecoder();

/** @throws ApiError 400 for invalid UTF-8 */
function decoded(decoder: TextDecoder, bytes?: ArrayBuffer | Uint8Array, stream = false): string {
  try {
    return decoder.decode(bytes, { stream });
  } catch {
    throw unreadable('the body is not valid UTF-8');
  }
}

async function readPieces(
  body: ReadableStream<Uint8Array>,
  limit: number,
  late: Promise<never>,
  hold: (bytes: number) => void,
): Promise<string> {
  const decoder = newDecoder();
  let size = 0;
  let text = '';
  for await (const bytes of piecesOf(body, (piece) => Promise.race([piece, late]))) {
    size += bytes.byteLength;
    if (size > limit) throw tooLarge(limit);
    hold(bytes.byteLength);
    text += decoded(decoder, bytes, true);
  }
  return text + decoded(decoder);
}

/** Yields a body as it arrives. @param limited limits the time that each piece may take */
async function* piecesOf(
  body: ReadableStream<Uint8Array>,
  limited: (piece: Promise<Piece>) => Promise<Piece>,
): AsyncGenerator<Uint8Array> {
  const reader = body.getReader();
  let reading = true;
  try {
    for (;;) {
      const { value, done } = await limited(reader.read());
      reading = false;
      if (done) return;
      yield value;
      reading = true;
    }
  } finally {
    // The lock cannot be released while a read is pending.
    if (reading) void reader.cancel().catch(() => {});
    else reader.releaseLock();
  }
}

type Piece = ReadableStreamReadResult<Uint8Array>;

/**
 * Yields a body of any length as it arrives.
 * @throws ApiError 415 if it is compressed, 408 if nothing arrives within BODY_TIMEOUT_MS, 400 if it is
 *   incomplete
 */
export async function* bodyPieces(
  request: Request,
  { settings, timers }: Pick<ReadLimits, 'settings' | 'timers'>,
): AsyncGenerator<Uint8Array> {
  checkEncoding(request);
  if (request.body === null) return;
  const limited = async (piece: Promise<Piece>): Promise<Piece> => {
    const whole = piece.catch(() => {
      throw new ApiError('invalid_value', 'The request body is incomplete.');
    });
    const read = await inTime(whole, { after: timers.after, ms: settings.BODY_TIMEOUT_MS });
    if (read === null) throw bodyTimeout();
    return read;
  };
  try {
    yield* piecesOf(request.body, limited);
  } finally {
    if (!request.body.locked) await drainRest(request.body, settings);
  }
}

/** Shorter bodies cost too little to bound their lists. */
const LONG_TEXT = 16_384;

/** Upper bounds for draining: a multiple of the body limit, and milliseconds. */
const DRAIN = { times: 2, ms: 1_000 };
/** Read at a time. Half as much costs a fifth more, the platform's own pieces five times as much. */
const DRAINED_BYTES = 131_072;

/**
 * Discards the rest of a rejected body, up to a limit. If the connection closed while the client is still
 * writing, the client might see a broken pipe instead of the error response.
 */
export async function drain(request: Request, settings: Settings): Promise<void> {
  if (request.body === null || request.bodyUsed || request.body.locked) return;
  await drainRest(request.body, settings);
}

async function drainRest(body: ReadableStream<Uint8Array>, { MAX_BODY_BYTES }: Settings): Promise<void> {
  const reader = body.getReader({ mode: 'byob' });
  const timer = setTimeout(() => void reader.cancel().catch(() => {}), DRAIN.ms);
  try {
    let memory = new Uint8Array(DRAINED_BYTES);
    for (let size = 0; size < DRAIN.times * MAX_BODY_BYTES; size += memory.length) {
      const { value, done } = await reader.readAtLeast(DRAINED_BYTES, memory);
      if (done || value === undefined) return;
      memory = new Uint8Array(value.buffer);
    }
  } catch {
    // The client has disconnected.
  } finally {
    clearTimeout(timer);
  }
}

/**
 * Parses the body as a JSON object.
 * @throws ApiError 415 for another media type or encoding, 413 above the size limit, 408 if it arrives too
 *   slowly, and 400 for any other invalid body
 * @param maxNumbers of each list of numbers in it. Not asked for a short body
 */
export async function readJsonObject(
  request: Request,
  limits: ReadLimits,
  maxNumbers: () => Promise<number> = async () => Infinity,
): Promise<JsonObject> {
  checkMediaType(request);
  const text = await readText(request, limits);
  const fault = complexityFault(text, text.length < LONG_TEXT ? Infinity : await maxNumbers());
  if (fault !== null) {
    const { message, field } = fault;
    const [code, what] =
      field === null
        ? (['invalid_value', 'request body'] as const)
        : (['array_above_max_length', `'${field}'`] as const);
    const advice = 'Send a simpler body, or several requests.';
    throw new ApiError(code, `Invalid ${what}: ${message}. ${advice}`, { param: field });
  }
  let body: unknown;
  try {
    body = parseExactly(text, 'seed');
    if (typeof body === 'object' && body !== null) body = withDigits(body, text, CONSTRAINTS);
  } catch (thrown) {
    throw unreadable(errorMessage(thrown));
  }
  if (!isJsonObject(body))
    throw new ApiError('invalid_type', 'Invalid type for the request body: expected a JSON object.');
  const illFormed = fieldWithLoneSurrogate(text, body);
  if (illFormed === null) return body;
  const param = illFormed.toWellFormed();
  const message = `Invalid '${param}': it contains half of a surrogate pair, which UTF-8 cannot encode. Send the whole character, or U+FFFD in its place.`;
  throw new ApiError('invalid_value', message, { param });
}
