import { ApiError } from '@continuo/shared/errors.ts';
import { retry } from '@continuo/shared/retry.ts';
import { sha256Hex } from '@continuo/shared/signing.ts';
import { authenticate } from '../auth/auth.ts';
import { chooseDialect } from '../dialects/dialect.ts';
import type { IdempotencyClaim, StoredResponse } from '../env/replay-protocol.ts';
import { IDEMPOTENCY_HEADER, REPLAYED_HEADER } from '../http/headers.ts';
import { readText } from '../http/request-body.ts';
import type { Reply, RequestContext } from '../http/request-context.ts';
import { ignoredHeaders } from '../http/responses.ts';
import type { RouteHandler } from '../http/router.ts';

/** Added to the request time-out: after that, a running request counts as lost. */
const GRACE_MS = 30_000;
/** A Durable Object value holds at most 2 MB, which are so many characters of any kind. */
const PIECE_CHARACTERS = 1_000_000;

function keyOf(request: Request): string {
  const key = request.headers.get(IDEMPOTENCY_HEADER) ?? '';
  if (/^[\x21-\x7e]{1,255}$/.test(key)) return key;
  throw new ApiError(
    'invalid_value',
    "Invalid header 'idempotency-key': expected 1 to 255 printable characters.",
    { param: IDEMPOTENCY_HEADER },
  );
}

/** @param piece returns a further piece of the body */
async function replayed(
  { status, contentType, headers, body, pieces = 0 }: StoredResponse,
  piece: (index: number) => Promise<string | null>,
): Promise<Response> {
  const texts = [body];
  for (let index = 0; index < pieces; index += 1) texts.push((await piece(index)) ?? unavailable());
  const all = { ...headers, 'content-type': contentType, [REPLAYED_HEADER]: 'true' };
  return new Response(texts.join(''), { status, headers: all });
}

/** Runs the handler at most once per idempotency key. Streams are not stored, but can be resumable. */
export function idempotent(handler: RouteHandler): RouteHandler {
  return async (request, context, argument) => {
    if (!request.headers.has(IDEMPOTENCY_HEADER)) return handler(request, context, argument);
    const { tenant, key: caller } = await authenticate(request, context, 'completions');
    const key = keyOf(request);
    const dialect = chooseDialect(request, tenant);
    const body = await readText(request, context);
    context.heldBody.release(); // The handler reads it again.
    // The same body is another request at another address, in another dialect, or with a key that may use
    // other models.
    const { pathname } = new URL(request.url);
    const requestHash = await sha256Hex(
      `${pathname}\n${dialect.name}\n${JSON.stringify(caller.models)}\n${body}`,
    );
    const { ANSWERS } = context.env;
    const object = () => ANSWERS.get(ANSWERS.idFromName(`${tenant.id}\n${key}`));
    const claimant = context.randomHex(16);
    const lifetime = context.settings.REQUEST_TIMEOUT_MS + GRACE_MS;
    const claim = await retry<IdempotencyClaim>(
      async () => await object().claim(claimant, requestHash, lifetime),
      context.backoff,
    ).catch(unavailable);
    if (claim.turn === 'replay') {
      const piece = (index: number) => retry(async () => await object().piece(index), context.backoff);
      return replayed(claim.answer, (index) => piece(index).catch(unavailable));
    }
    if (claim.turn === 'mismatch') throw mismatch();
    if (claim.turn === 'wait') throw stillRunning();
    const inner = new Request(request.url, {
      method: request.method,
      headers: request.headers,
      body,
      signal: request.signal,
    });
    const claimed: ClaimedKey = {
      async keep(response) {
        const [body = '', ...rest] = piecesOf(response.body);
        for (const [index, text] of rest.entries()) {
          await retry(() => object().keepPiece(claimant, index, text), context.backoff);
        }
        const first = { ...response, body, ...(rest.length > 0 && { pieces: rest.length }) };
        await retry(() => object().keep(claimant, first), context.backoff);
      },
      release: () => retry(() => object().release(claimant), context.backoff),
    };
    return runOnce(claimed, () => Promise.resolve(handler(inner, context, argument)), context);
  };
}

const piecesOf = (text: string): string[] =>
  Array.from({ length: Math.ceil(text.length / PIECE_CHARACTERS) }, (_, index) =>
    text.slice(index * PIECE_CHARACTERS, (index + 1) * PIECE_CHARACTERS),
  );

function unavailable(): never {
  throw new ApiError(
    'server_is_overloaded',
    'Idempotency keys cannot be checked right now. Retry the request.',
  );
}

const mismatch = (): ApiError =>
  new ApiError(
    'conflict',
    'This idempotency key was used with another request body, dialect or choice of models. Use a new key.',
    { param: IDEMPOTENCY_HEADER, headers: { 'x-should-retry': 'false' } },
  );

const stillRunning = (): ApiError =>
  new ApiError('conflict', 'The request with this idempotency key is still running. Retry in 1 s.', {
    param: IDEMPOTENCY_HEADER,
    headers: { 'retry-after': '1', 'x-should-retry': 'true' },
  });

/** An idempotency key that this request holds. */
interface ClaimedKey {
  /** The body may have any length. */
  keep(response: StoredResponse): Promise<void>;
  release(): Promise<void>;
}

async function runOnce(
  claimed: ClaimedKey,
  run: () => Promise<Response>,
  { waitUntil, reply }: RequestContext,
): Promise<Response> {
  // If this fails, the key stays in use until the claim expires.
  const release = () => claimed.release().catch(() => {});
  try {
    const response = await run();
    const contentType = response.headers.get('content-type') ?? '';
    if (!contentType.startsWith('application/json') || response.body === null) {
      waitUntil(release());
      return response;
    }
    const { readable, writable } = new IdentityTransformStream();
    waitUntil(passOn(response, reply, writable.getWriter(), { ...claimed, release }));
    return new Response(readable, response);
  } catch (thrown) {
    // Errors are not stored: a repeated request is checked again.
    waitUntil(release());
    throw thrown;
  }
}

/**
 * Passes the white space of a late response on as it arrives, then stores the response, then passes it on.
 */
async function passOn(
  { status, headers, body: stream }: Response,
  reply: Reply,
  client: WritableStreamDefaultWriter<Uint8Array>,
  { keep, release }: ClaimedKey,
): Promise<void> {
  const reader = stream!.getReader();
  const decoder = new TextDecoder();
  let body = '';
  try {
    for (let read = await reader.read(); !read.done; read = await reader.read()) {
      const text = decoder.decode(read.value, { stream: true });
      body = body === '' ? text.trimStart() : body + text;
      if (body === '') await client.write(read.value);
    }
  } catch (thrown) {
    // The client has disconnected, or the completion has failed.
    await Promise.allSettled([reader.cancel(thrown), client.abort(thrown), release()]);
    return;
  }
  const contentType = headers.get('content-type') ?? '';
  // The caller gets the response even if it cannot be stored.
  await keep({ status, contentType, headers: ignoredHeaders(reply), body }).catch(() => {});
  await client.write(new TextEncoder().encode(body)).catch(() => {});
  await client.close().catch(() => {});
}
