import { ApiError } from '@continuo/shared/errors.ts';
import { retry } from '@continuo/shared/retry.ts';
import { authenticate } from '../auth/auth.ts';
import type { Resumed, StreamTailRpc } from '../env/replay-protocol.ts';
import { LAST_EVENT_HEADER, REQUEST_ID_HEADER, RESUMABLE_HEADER } from '../http/headers.ts';
import { readText } from '../http/request-body.ts';
import type { RequestContext } from '../http/request-context.ts';
import { eventStreamResponse } from '../http/responses.ts';
import type { RouteHandler } from '../http/router.ts';

const tailOf = ({ env }: RequestContext, completion: string): DurableObjectStub<StreamTailRpc> =>
  env.STREAMS.get(env.STREAMS.idFromName(completion));

function unavailable(): never {
  throw new ApiError(
    'server_is_overloaded',
    'Resumable streams are not available right now. Retry the request.',
  );
}

const invalidResumable = (): ApiError =>
  new ApiError('invalid_value', `Invalid header '${RESUMABLE_HEADER}': expected 'true', or no such header.`, {
    param: RESUMABLE_HEADER,
  });

/** Sends resumable requests through a Durable Object of their own; passes others to the handler. */
export function resumable(handler: RouteHandler): RouteHandler {
  return async (request, context, argument) => {
    const wanted = request.headers.get(RESUMABLE_HEADER);
    if (wanted === null) return handler(request, context, argument);
    const { tenant } = await authenticate(request, context, 'completions');
    if (wanted.trim().toLowerCase() !== 'true') throw invalidResumable();
    const headers = new Headers(request.headers);
    headers.delete(RESUMABLE_HEADER);
    headers.set(REQUEST_ID_HEADER, context.requestId);
    headers.set('traceparent', context.traceparent);
    const completion = context.randomHex(16);
    const inner = new Request(request.url, {
      method: 'POST',
      headers,
      body: await readText(request, context),
    });
    context.heldBody.release(); // The inner request counts it again.
    const props = { completion };
    const response = await tailOf(context, completion).begin(inner, tenant.id, props).catch(unavailable);
    // The headers of a response from an object are immutable; those of a copy are not.
    return new Response(response.body, response);
  };
}

/** Reading a stream again costs as much as refusing so many bytes, so a tenant gets 25 per second. */
const REPLAY_COST_BYTES = 327_680;

const ID = /^cmpl-([0-9a-f]{32})$/;

function lastEventId(request: Request): number {
  const header = request.headers.get(LAST_EVENT_HEADER)?.trim() ?? '0';
  if (/^\d{1,15}$/.test(header)) return Number(header);
  throw new ApiError('invalid_value', "Invalid header 'last-event-id': expected a number.", {
    param: LAST_EVENT_HEADER,
  });
}

const noStream = (): ApiError =>
  new ApiError(
    'not_found',
    'This stream does not exist: it was not resumable, or it ended more than one minute ago. Send a new request.',
  );

/** Sends the events of a completion after the last one that the client received. */
export async function resumeStream(
  request: Request,
  context: RequestContext,
  tenantId: string,
  id: string,
): Promise<Response> {
  const completion = ID.exec(id)?.[1];
  const from = lastEventId(request);
  await context.freeWorkTurn(tenantId, REPLAY_COST_BYTES);
  if (completion === undefined) throw noStream();
  const tail = () => tailOf(context, completion);
  const stream = await retry<Resumed>(async () => await tail().resume(from, tenantId), context.backoff).catch(
    unavailable,
  );
  if (stream === null) throw noStream();
  if (stream === 'beyond-end') {
    const message = `Invalid header '${LAST_EVENT_HEADER}': the stream has no event ${from} yet. Send the id of the last event that you received.`;
    throw new ApiError('invalid_value', message, { param: LAST_EVENT_HEADER });
  }
  const headers = await tail()
    .headers(tenantId)
    .catch(() => ({}));
  return eventStreamResponse(stream, headers);
}
