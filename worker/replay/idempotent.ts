import { ApiError } from '../../shared/errors.ts';
import { sha256Hex } from '../../shared/signing.ts';
import { authenticate } from '../auth/auth.ts';
import type { RequestContext } from '../context.ts';
import { chooseDialect } from '../dialects/dialect.ts';
import { readText } from '../http/request-body.ts';
import { insistently } from '../retry.ts';
import type { Handler } from '../routes.ts';
import type { Claim, KeptAnswer } from './objects/idempotent-answer.ts';

/** A plain request that names this header runs once; repeated, it gets the first one's answer. */
export const IDEMPOTENCY_HEADER = 'idempotency-key';

const GRACE_MS = 30_000;
/** Larger answers are not kept: the platform bounds what one value may hold. */
const LARGEST_KEPT = 1_000_000;

function keyOf(request: Request): string {
  const key = request.headers.get(IDEMPOTENCY_HEADER) ?? '';
  if (/^[\x21-\x7e]{1,255}$/.test(key)) return key;
  throw new ApiError(
    'invalid_value',
    "Invalid header 'idempotency-key': expected 1 to 255 printable characters.",
    { param: IDEMPOTENCY_HEADER },
  );
}

export const REPLAYED_HEADER = 'idempotent-replayed';

const replayed = ({ status, contentType, body }: KeptAnswer): Response =>
  new Response(body, { status, headers: { 'content-type': contentType, [REPLAYED_HEADER]: 'true' } });

/** The handler, run at most once per idempotency key. Streams are left alone; they can be made resumable. */
export function idempotent(handler: Handler): Handler {
  return async (request, context, argument) => {
    if (!request.headers.has(IDEMPOTENCY_HEADER)) return handler(request, context, argument);
    const { tenant, key: caller } = await authenticate(request, context, 'completions');
    const key = keyOf(request);
    const dialect = chooseDialect(request, tenant);
    const body = await readText(request, context);
    // The same body asks for something else in another dialect, and with a key that may use other models.
    const asked = await sha256Hex(`${dialect.name}\n${JSON.stringify(caller.models)}\n${body}`);
    const { ANSWERS } = context.env;
    const own = () => ANSWERS.get(ANSWERS.idFromName(`${tenant.id}\n${key}`));
    const claimant = context.randomHex(16);
    const lifetime = context.settings.REQUEST_TIMEOUT_MS + GRACE_MS;
    const claim = await insistently<Claim>(async () => await own().claim(claimant, asked, lifetime)).catch(
      unavailable,
    );
    if (claim.turn === 'replay') return replayed(claim.answer);
    if (claim.turn === 'mismatch') {
      const message = 'This idempotency key was used with another request body, dialect or choice of models.';
      throw new ApiError('conflict', message, {
        param: IDEMPOTENCY_HEADER,
        headers: { 'x-should-retry': 'false' },
      });
    }
    if (claim.turn === 'wait') {
      throw new ApiError('conflict', 'The request with this idempotency key is still running.', {
        param: IDEMPOTENCY_HEADER,
        headers: { 'retry-after': '1', 'x-should-retry': 'true' },
      });
    }
    const inner = new Request(request.url, {
      method: request.method,
      headers: request.headers,
      body,
      signal: request.signal,
    });
    const claimed: Claimed = {
      keep: (answer) => insistently(() => own().keep(claimant, answer)),
      release: () => insistently(() => own().release(claimant)),
    };
    return settle(claimed, () => Promise.resolve(handler(inner, context, argument)), context);
  };
}

function unavailable(): never {
  throw new ApiError('server_is_overloaded', 'Idempotency keys cannot be checked right now.');
}

/** A key that this request holds. */
interface Claimed {
  keep(answer: KeptAnswer): Promise<void>;
  release(): Promise<void>;
}

async function settle(
  claimed: Claimed,
  run: () => Promise<Response>,
  { waitUntil }: RequestContext,
): Promise<Response> {
  // Unheard, it keeps the key until the claim ends.
  const release = () => claimed.release().catch(() => {});
  try {
    const answer = await run();
    const contentType = answer.headers.get('content-type') ?? '';
    if (!contentType.startsWith('application/json')) {
      waitUntil(release());
      return answer;
    }
    const body = await answer.text();
    const kept = { status: answer.status, contentType, body };
    // An answer that cannot be kept is an answer all the same.
    await (body.length > LARGEST_KEPT ? release() : claimed.keep(kept).catch(() => {}));
    return new Response(body, answer);
  } catch (thrown) {
    // What was thrown is an error answer; the same request gets it again by being checked again.
    waitUntil(release());
    throw thrown;
  }
}
