import { CommandError, EXIT } from '@continuo/origin/terminal/program.ts';
import type { Fields } from '@continuo/origin/terminal/tables.ts';
import { completionChunk, errorResponseBody } from '@continuo/shared/completion-response.ts';
import { errorCode } from '@continuo/shared/error-details.ts';
import { SseDecoder } from '@continuo/shared/framing.ts';
import * as z from 'zod';
import type { Access } from './access.ts';

/** A client of the Worker's HTTP API. */
export interface Api {
  /** Sends a request with JSON or a form and returns the answer. @throws CommandError the server's message */
  send(method: Method, path: string, body?: unknown, signal?: AbortSignal): Promise<Response>;
  /** Returns the object in the answer. @throws CommandError */
  request(method: Method, path: string, body?: unknown): Promise<Fields>;
  /** Reads all pages of a list. */
  list(path: string): Promise<Fields[]>;
}

type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

const object = z.record(z.string(), z.unknown());
/** An error answer; servers differ in the other fields. */
export const failure = z.object({ error: errorResponseBody.shape.error.pick({ message: true }) });
const list = z.object({
  data: z.array(object),
  has_more: z.boolean().default(false),
  next: z.string().nullish(),
});

const NO_SERVER_HINT = 'Run continuo serve, or name another server in CONTINUO_URL.';

export function createApi({ url, key }: Access, fetchFrom: typeof fetch): Api {
  const send: Api['send'] = async (method, path, body, signal) => {
    const response = await fetchFrom(new URL(path, url), {
      method,
      headers: {
        authorization: `Bearer ${key}`,
        ...(body instanceof FormData ? {} : { 'content-type': 'application/json' }),
      },
      body: body === undefined ? null : body instanceof FormData ? body : JSON.stringify(body),
      signal: signal ?? null,
    }).catch((error: unknown) => {
      const code = errorCode((error as Error).cause);
      const why = code === undefined ? '' : ` (${code})`;
      throw new CommandError(`No server answers at ${url.origin}${why}. ${NO_SERVER_HINT}`, EXIT.unreachable);
    });
    if (response.ok) return response;
    throw await refusal(response);
  };
  const parse = <T>(schema: z.ZodType<T>, response: unknown): T => {
    const { data } = schema.safeParse(response);
    if (data !== undefined) return data;
    throw new CommandError(`${url.origin} is not a Continuo server.`);
  };
  const request: Api['request'] = async (method, path, body) =>
    parse(object, await jsonOf(await send(method, path, body)));
  return {
    send,
    request,
    async list(path) {
      const items: Fields[] = [];
      const separator = path.includes('?') ? '&' : '?';
      for (let after = ''; ; ) {
        const page = parse(
          list,
          await request('GET', `${path}${separator}after=${encodeURIComponent(after)}`),
        );
        items.push(...page.data);
        if (!page.has_more) return items;
        after = page.next ?? String(page.data.at(-1)?.id);
      }
    },
  };
}

const jsonOf = (response: Response): Promise<unknown> => response.json().catch(() => null);

async function refusal(response: Response): Promise<CommandError> {
  const parsed = failure.safeParse(await jsonOf(response));
  const message = parsed.success
    ? parsed.data.error.message
    : `The server answered with status ${response.status}.`;
  const wait = response.headers.get('retry-after');
  return new CommandError(wait === null ? message : `${message} Try again in ${wait} s.`);
}

export type Chunk = z.infer<typeof completionChunk>;

/**
 * Requests a completion and yields its chunks as they arrive.
 * @throws CommandError if the server refuses, reports an error in the stream, or the stream has no end
 */
export async function* streamCompletion(api: Api, fields: Fields): AsyncGenerator<Chunk> {
  const response = await api.send('POST', '/v1/completions', { ...fields, stream: true });
  const events = new SseDecoder();
  try {
    for await (const text of response.body!.pipeThrough(new TextDecoderStream())) {
      for (const payload of events.push(text)) {
        if (payload === '[DONE]') return;
        yield readChunk(payload);
      }
    }
  } catch (error) {
    if (error instanceof CommandError) throw error;
  }
  throw new CommandError('The connection was lost before the end of the completion.', EXIT.unreachable);
}

function readChunk(payload: string): Chunk {
  const value: unknown = JSON.parse(payload);
  const failed = failure.safeParse(value);
  if (failed.success) throw new CommandError(failed.data.error.message);
  return completionChunk.parse(value);
}
