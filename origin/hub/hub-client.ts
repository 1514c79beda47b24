import { HubError, TransientError } from './hub-error.ts';
import type { HubSettings } from './hub-settings.ts';
import { type FileIdentity, identityOf, type Listing, readListing } from './listing.ts';
import { refusal } from './refusals.ts';
import { type Patience, withPatience } from './retries.ts';

/** The Hugging Face hub protocol: listings, and files behind redirects. */

export interface HubClientOptions {
  readonly settings: HubSettings;
  readonly fetch: typeof fetch;
  readonly patience: Patience;
  /** A connection that brings nothing for so long counts as lost. */
  readonly stallMs: number;
}

/** One file of one commit. */
export interface RemoteFile {
  readonly repository: string;
  readonly commit: string;
  readonly path: string;
}

export interface Download {
  readonly status: number;
  readonly headers: Headers;
  /** Throws TransientError when the connection is lost. */
  readonly chunks: AsyncIterable<Uint8Array>;
  /** Instead of reading `chunks`. */
  discard(): Promise<void>;
}

const MOST_REDIRECTS = 10;
const REDIRECTS = [301, 302, 303, 307, 308];

export class HubClient {
  readonly patience: Patience;
  readonly #settings: HubSettings;
  readonly #fetch: typeof fetch;
  readonly #stallMs: number;

  constructor({ settings, fetch, patience, stallMs }: HubClientOptions) {
    this.#settings = settings;
    this.#fetch = fetch;
    this.patience = patience;
    this.#stallMs = stallMs;
  }

  /** The files of a repository at a branch, tag or commit. @throws HubError */
  listing(repository: string, revision: string): Promise<Listing> {
    const address = `/api/models/${repository}/revision/${encodeURIComponent(revision)}?blobs=true`;
    return withPatience(this.patience, async () => {
      const { status, headers, chunks } = await this.#request('GET', address, {});
      const body = await readText(chunks);
      if (status === 200) return readListing(parseJson(body));
      throw refusal(status, headers, { repository, revision, settings: this.#settings });
    });
  }

  /** Size and checksum of a file from its headers, for hubs that list names alone. @throws HubError */
  identity(file: RemoteFile): Promise<FileIdentity> {
    return withPatience(this.patience, async () => {
      const { status, headers, discard } = await this.#request('HEAD', addressOf(file), {});
      await discard();
      if (status >= 400) throw this.#refusal(status, headers, file);
      const size = Number(headers.get('x-linked-size') ?? headers.get('content-length') ?? Number.NaN);
      const identity = identityOf(size, headers.get('x-linked-etag') ?? headers.get('etag'));
      if (identity === null) throw new HubError(`the hub gives no checksum for ${file.path}`);
      return identity;
    });
  }

  /**
   * Starts one transfer from byte `from` on. Answers 206, 200 (the server sends the whole file) or 416.
   * @throws HubError, TransientError
   */
  async open(file: RemoteFile, from: number): Promise<Download> {
    const range: Record<string, string> = from > 0 ? { range: `bytes=${from}-` } : {};
    const download = await this.#request('GET', addressOf(file), range);
    if ([200, 206, 416].includes(download.status)) return download;
    await download.discard();
    throw this.#refusal(download.status, download.headers, file);
  }

  #refusal(status: number, headers: Headers, { repository, commit, path }: RemoteFile): Error {
    return refusal(status, headers, { repository, revision: commit, path, settings: this.#settings });
  }

  /** Follows redirects. The token goes to the hub alone; what the hub says of a file it redirects to is kept. */
  async #request(
    method: 'GET' | 'HEAD',
    address: string,
    headers: Readonly<Record<string, string>>,
  ): Promise<Download> {
    const { endpoint, token } = this.#settings;
    let url = new URL(endpoint + address);
    for (let hop = 0; hop <= MOST_REDIRECTS; hop += 1) {
      const known = url.origin === new URL(endpoint).origin && token !== null;
      const authorization: Record<string, string> = known ? { authorization: `Bearer ${token}` } : {};
      const download = await this.#send(method, url, { ...headers, ...authorization });
      const location = download.headers.get('location');
      const told = method === 'HEAD' && download.headers.has('x-linked-etag');
      if (!REDIRECTS.includes(download.status) || location === null || told) return download;
      await download.discard();
      url = nextUrl(url, location);
    }
    throw new HubError(`the hub redirects more than ${MOST_REDIRECTS} times`);
  }

  async #send(method: string, url: URL, headers: Readonly<Record<string, string>>): Promise<Download> {
    const controller = new AbortController();
    const timer = setTimeout(() => controller.abort(), this.#stallMs).unref();
    // Sizes and ranges are those of the file itself, so nothing may be compressed on the way.
    const own = { 'accept-encoding': 'identity', 'user-agent': 'continuo' };
    try {
      const response = await this.#fetch(url, {
        method,
        redirect: 'manual',
        headers: { ...own, ...headers },
        signal: controller.signal,
      });
      return {
        status: response.status,
        headers: response.headers,
        chunks: chunksOf(response, url.host, timer),
        async discard() {
          clearTimeout(timer);
          await response.body?.cancel();
        },
      };
    } catch (error) {
      clearTimeout(timer);
      throw lost(error, url.host);
    }
  }
}

/** The body; each piece winds the stall timer up again. */
async function* chunksOf(
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
    throw lost(error, host);
  } finally {
    clearTimeout(timer);
  }
}

async function readText(chunks: AsyncIterable<Uint8Array>): Promise<string> {
  const pieces: Uint8Array[] = [];
  for await (const chunk of chunks) pieces.push(chunk);
  return Buffer.concat(pieces).toString('utf8');
}

function lost(error: unknown, host: string): TransientError {
  const { name, cause } = error as Error & { cause?: { code?: string } };
  const why = name === 'AbortError' ? 'nothing came for too long' : (cause?.code ?? 'it was closed');
  return new TransientError(`connection to ${host} lost: ${why}`);
}

function nextUrl(from: URL, location: string): URL {
  const next = URL.parse(location, from.href);
  const schemes = from.protocol === 'https:' ? ['https:'] : ['http:', 'https:'];
  if (next === null || !schemes.includes(next.protocol) || next.username !== '' || next.password !== '') {
    throw new HubError(`${from.host} redirects to an address that is not safe to follow`);
  }
  return next;
}

const addressOf = ({ repository, commit, path }: RemoteFile): string =>
  `/${repository}/resolve/${commit}/${path.split('/').map(encodeURIComponent).join('/')}`;

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new HubError("the hub's answer is not JSON; check HF_ENDPOINT");
  }
}
