import { HubError, type HubTarget, statusError, TransientHubError } from './hub-error.ts';
import type { HubSettings } from './hub-settings.ts';
import { type FileIdentity, fileIdentity, type Listing, readListing } from './listing.ts';
import { type RetryOptions, withRetries } from './retries.ts';

export interface HubClientOptions {
  readonly settings: HubSettings;
  readonly fetch: typeof fetch;
  readonly retries: RetryOptions;
  /** A connection without data for this long counts as lost. */
  readonly stallMs: number;
}

/** One file of one commit. */
export type HubFile = Required<HubTarget>;

export interface HubResponse {
  readonly status: number;
  readonly headers: Headers;
  /** The body; already read if the status is not 200 or 206. Throws TransientHubError if the connection is lost. */
  readonly chunks: AsyncIterable<Uint8Array>;
}

const MAX_REDIRECTS = 10;
const REDIRECT_STATUSES = [301, 302, 303, 307, 308];

/** Client of the Hugging Face hub protocol: listings, and files behind redirects. */
export class HubClient {
  readonly retries: RetryOptions;
  readonly #options: HubClientOptions;

  constructor(options: HubClientOptions) {
    this.retries = options.retries;
    this.#options = options;
  }

  /** Lists the files of a repository at a branch, tag or commit. @throws HubError */
  listing(repository: string, revision: string): Promise<Listing> {
    const path = `/api/models/${repository}/revision/${encodeURIComponent(revision)}?blobs=true`;
    return withRetries(this.retries, async () => {
      const { status, headers, chunks } = await this.#request('GET', path);
      if (status !== 200)
        throw statusError(status, headers, { repository, revision }, this.#options.settings);
      return readListing(parseJson(await readText(chunks)));
    });
  }

  /** Reads size and checksum from a file's headers, for hubs that list only names. @throws HubError */
  identity(file: HubFile): Promise<FileIdentity> {
    return withRetries(this.retries, async () => {
      const { status, headers } = await this.#request('HEAD', pathOf(file));
      if (status >= 400) throw statusError(status, headers, file, this.#options.settings);
      const size = Number(headers.get('x-linked-size') ?? headers.get('content-length') ?? Number.NaN);
      const identity = fileIdentity(size, headers.get('x-linked-etag') ?? headers.get('etag'));
      if (identity === null) throw new HubError(`the hub sends no checksum for ${file.path}`);
      return identity;
    });
  }

  /**
   * Requests a file from byte `from` on, once.
   * @returns status 206, 200 (the server sends the whole file) or 416
   * @throws HubError, TransientHubError
   */
  async open(file: HubFile, from: number): Promise<HubResponse> {
    const response = await this.#request('GET', pathOf(file), from > 0 ? { range: `bytes=${from}-` } : {});
    if ([200, 206, 416].includes(response.status)) return response;
    throw statusError(response.status, response.headers, file, this.#options.settings);
  }

  /** Follows redirects. Sends the token only to the hub. */
  async #request(
    method: 'GET' | 'HEAD',
    path: string,
    headers: Record<string, string> = {},
  ): Promise<HubResponse> {
    const { endpoint, token } = this.#options.settings;
    let url = new URL(endpoint + path);
    for (let redirects = 0; redirects <= MAX_REDIRECTS; redirects += 1) {
      const isHub = url.origin === new URL(endpoint).origin;
      const authorization: Record<string, string> =
        isHub && token !== null ? { authorization: `Bearer ${token}` } : {};
      const response = await this.#send(method, url, { ...headers, ...authorization });
      const location = response.headers.get('location');
      // The hub describes a file in the headers of the redirect to its storage server.
      const describesFile = method === 'HEAD' && response.headers.has('x-linked-etag');
      if (!REDIRECT_STATUSES.includes(response.status) || location === null || describesFile) return response;
      url = redirectTarget(url, location);
    }
    throw new HubError(`the hub redirects more than ${MAX_REDIRECTS} times`);
  }

  async #send(method: string, url: URL, headers: Record<string, string>): Promise<HubResponse> {
    const controller = new AbortController();
    const timer = setTimeout(() => controller.abort(), this.#options.stallMs).unref();
    try {
      const response = await this.#options.fetch(url, {
        method,
        redirect: 'manual',
        // Sizes and ranges count bytes of the file, so the body must not be compressed.
        headers: { 'accept-encoding': 'identity', 'user-agent': 'continuo', ...headers },
        signal: controller.signal,
      });
      const chunks = readChunks(response, url.host, timer);
      if (method === 'HEAD' || !response.ok) await readText(chunks);
      return { status: response.status, headers: response.headers, chunks };
    } catch (error) {
      clearTimeout(timer);
      throw error instanceof TransientHubError ? error : connectionLost(error, url.host);
    }
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

async function readText(chunks: AsyncIterable<Uint8Array>): Promise<string> {
  const pieces: Uint8Array[] = [];
  for await (const chunk of chunks) pieces.push(chunk);
  return Buffer.concat(pieces).toString('utf8');
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

const pathOf = ({ repository, revision, path }: HubFile): string =>
  `/${repository}/resolve/${revision}/${path.split('/').map(encodeURIComponent).join('/')}`;

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new HubError("the hub's answer is not JSON; check HF_ENDPOINT");
  }
}
