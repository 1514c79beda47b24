import { ApiError } from '../../shared/errors.ts';
import { authenticate } from '../auth/auth.ts';
import type { RequestContext } from '../context.ts';
import { LAST_EVENT_HEADER, REQUEST_ID_HEADER, RESUMABLE_HEADER } from '../http/headers.ts';
import { readText } from '../http/request-body.ts';
import { eventStreamResponse } from '../http/responses.ts';
import type { RouteHandler } from '../http/router.ts';
import { retry } from '../retry.ts';
import type { StreamTailRpc } from './replay-protocol.ts';

const tailOf = ({ env }: RequestContext, completion: string): DurableObjectStub<StreamTailRpc> =>
  env.STREAMS.get(env.STREAMS.idFromName(completion));

function unavailable(): never {
  throw new ApiError(
    'server_is_overloaded',
    'Resumable streams are not available right now. Retry the request.',
  );
}

/** Sends each resumable request through its own Durable Object; passes all other requests to the handler. */
export function resumable(handler: RouteHandler): RouteHandler {
  return async (request, context, argument) => {
    if (request.headers.get(RESUMABLE_HEADER)?.toLowerCase() !== 'true') {
      return handler(request, context, argument);
    }
    const { tenant } = await authenticate(request, context, 'completions');
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
    const props = { completion, region: context.region };
    const answer = await tailOf(context, completion).begin(inner, tenant.id, props).catch(unavailable);
    // The headers of a response from an object are immutable; those of a copy are not.
    return new Response(answer.body, answer);
  };
}

const ID = /^cmpl-([0-9a-f]{32})$/;

function lastEventId(request: Request): number {
  const header = request.headers.get(LAST_EVENT_HEADER)?.trim() ?? '0';
  if (/^\d{1,15}$/.test(header)) return Number(header);
  throw new ApiError('invalid_value', "Invalid header 'last-event-id': expected a number.", {
    param: LAST_EVENT_HEADER,
  });
}

/** GET /v1/completions/{id}/stream: sends the events after the last one that the client received. */
export async function resumeStream(request: Request, context: RequestContext, id: string): Promise<Response> {
  const { tenant } = await authenticate(request, context, 'completions');
  const completion = ID.exec(id)?.[1];
  const from = lastEventId(request);
  const stream =
    completion === undefined
      ? null
      : await retry(() => tailOf(context, completion).resume(from, tenant.id)).catch(unavailable);
  if (stream === null) {
    const message =
      'This stream does not exist: it was not resumable, or it ended more than one minute ago. Send a new request.';
    throw new ApiError('not_found', message);
  }
  return eventStreamResponse(stream);
}
