import { ApiError } from '../../shared/errors.ts';
import { authenticate } from '../auth/auth.ts';
import type { RequestContext } from '../context.ts';
import { readText } from '../http/request-body.ts';
import { eventStreamResponse, REQUEST_ID_HEADER } from '../http/responses.ts';
import { insistently } from '../retry.ts';
import type { Handler } from '../routes.ts';
import type { StreamTail } from './objects/stream-tail.ts';

/** `x-resumable: true` lets a streaming completion outlive its client's connection. */
export const RESUMABLE_HEADER = 'x-resumable';

const tailOf = ({ env }: RequestContext, completion: string): DurableObjectStub<StreamTail> =>
  env.STREAMS.get(env.STREAMS.idFromName(completion));

function unavailable(): never {
  throw new ApiError('server_is_overloaded', 'Resumable streams cannot be reached right now.');
}

/** The handler, with resumable requests going through an object of their own; the others pass as they are. */
export function resumable(handler: Handler): Handler {
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
    // What comes from elsewhere has headers that cannot be changed.
    return new Response(answer.body, answer);
  };
}

export const LAST_EVENT_HEADER = 'last-event-id';

const ID = /^cmpl-([0-9a-f]{32})$/;

function lastEventId(request: Request): number {
  const header = request.headers.get(LAST_EVENT_HEADER)?.trim() ?? '0';
  if (/^\d{1,15}$/.test(header)) return Number(header);
  throw new ApiError('invalid_value', "Invalid header 'last-event-id': expected a number.", {
    param: LAST_EVENT_HEADER,
  });
}

/** GET /v1/completions/{id}/stream: what followed the last event the client has seen. */
export async function resumeStream(request: Request, context: RequestContext, id: string): Promise<Response> {
  const { tenant } = await authenticate(request, context, 'completions');
  const completion = ID.exec(id)?.[1];
  const from = lastEventId(request);
  const stream =
    completion === undefined
      ? null
      : await insistently(() => tailOf(context, completion).resume(from, tenant.id)).catch(unavailable);
  if (stream === null) {
    const message = 'There is no such stream: it was not resumable, or it ended more than a minute ago.';
    throw new ApiError('not_found', message);
  }
  return eventStreamResponse(stream);
}
