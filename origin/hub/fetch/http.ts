import { text } from 'node:stream/consumers';
import { HubError, TransientHubError } from './hub-error.ts';

export interface HttpOptions {
  readonly fetch: typeof fetch;
  /** A connection without data for this long counts as lost. */
  readonly stallMs: number;
}

export interface HttpRequest {
  readonly method: 'GET' | 'HEAD';
  readonly url: URL;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent only to this origin. */
  readonly token?: { readonly value: string; readonly origin: string } | null;
  /** Returns true for a redirect that is the answer. */
  readonly isFinal?: (response: HttpResponse) => boolean;
}

export interface HttpResponse {
  readonly status: number;
  readonly headers: Headers;
  /** The address after redirects. */
  readonly url: URL;
  /** The body; already read if the status is not 200 or 206. May throw TransientHubError. */
  readonly chunks: AsyncIterable<Uint8Array>;
}

const MAX_REDIRECTS = 10;
const REDIRECT_STATUSES = [301, 302, 303, 307, 308];

/** Sends a request and follows redirects. @throws HubError, TransientHubError */
export async function request(options: HttpOptions, wanted: HttpRequest): Promise<HttpResponse> {
  const { method, headers, token, isFinal } = wanted;
  let { url } = wanted;
  for (let redirects = 0; redirects <= MAX_REDIRECTS; redirects += 1) {
    const authorization: Record<string, string> =
      token?.origin === url.origin ? { authorization: `Bearer ${token.value}` } : {};
    const response = await send(options, method, url, { ...headers, ...authorization });
    const location = response.headers.get('location');
    if (!REDIRECT_STATUSES.includes(response.status) || location === null || isFinal?.(response))
      return response;
    url = redirectTarget(url, location);
  }
  throw new HubError(`${wanted.url.host} redirects more than ${MAX_REDIRECTS} times`);
}

async function send(
  { fetch, stallMs }: HttpOptions,
  method: HttpRequest['method'],
  url: URL,
  headers: Record<string, string>,
): Promise<HttpResponse> {
  const controller = new AbortController();
  const timer = setTimeout(() => controller.abort(), stallMs).unref();
  try {
    const response = await fetch(url, {
      method,
      redirect: 'manual',
      // Sizes and ranges count bytes of the file, so the body must not be compressed.
      headers: { 'accept-encoding': 'identity', 'user-agent': 'continuo', ...headers },
      signal: controller.signal,
    });
    const chunks = readChunks(response, url.host, timer);
    if (method === 'HEAD' || !response.ok) await text(chunks);
    return { status: response.status, headers: response.headers, url, chunks };
  } catch (error) {
    clearTimeout(timer);
    throw error instanceof TransientHubError ? error : connectionLost(error, url.host);
  }
}

/** Reads a body; each chunk restarts the stall timer. */
async function* readChunks(
  response: Response,
  host: string,
  timer: NodeJS.Timeout,
): AsyncGenerator<Uint8Array, void> {
  try {
    for await (const chunk of response.body ?? []) {
      timer.refresh();
      yield chunk;
    }
  } catch (error) {
    throw connectionLost(error, host);
  } finally {
    clearTimeout(timer);
  }
}

function connectionLost(error: unknown, host: string): TransientHubError {
  const { name, cause } = error as Error & { cause?: { code?: string } };
  const reason = name === 'AbortError' ? 'no data for too long' : (cause?.code ?? 'closed by the server');
  return new TransientHubError(`connection to ${host} lost: ${reason}`);
}

/** @throws HubError for a redirect from https to http and for addresses with a user or password */
function redirectTarget(from: URL, location: string): URL {
  const target = URL.parse(location, from.href);
  const protocols = from.protocol === 'https:' ? ['https:'] : ['http:', 'https:'];
  if (target === null || !protocols.includes(target.protocol) || target.username || target.password) {
    throw new HubError(`${from.host} redirects to an unsafe address`);
  }
  return target;
}
