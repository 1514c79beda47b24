import { text } from 'node:stream/consumers';
import { type HttpOptions, type HttpRequest, type HttpResponse, request } from './http.ts';
import { HubError, type HubTarget, HubUnreachable, statusError } from './hub-error.ts';
import type { HubSettings } from './hub-settings.ts';
import { type FileIdentity, fileIdentity, type Listing, readListing } from './listing.ts';
import { type RetryOptions, withRetries } from './retries.ts';

interface HubClientOptions extends HttpOptions {
  readonly settings: HubSettings;
  readonly retries: RetryOptions;
}

/** One file of one commit. */
export type HubFile = Required<HubTarget>;

/** Client of the Hugging Face hub protocol: listings, and files behind redirects. */
export class HubClient {
  readonly retries: RetryOptions;
  readonly #options: HubClientOptions;

  constructor(options: HubClientOptions) {
    this.retries = options.retries;
    this.#options = options;
  }

  get endpoint(): string {
    return this.#options.settings.endpoint;
  }

  /** Lists the files of a repository at a branch, tag or commit. @throws HubError */
  listing(repository: string, revision: string): Promise<Listing> {
    const path = `/api/models/${repository}/revision/${encodeURIComponent(revision)}?blobs=true`;
    return withRetries(this.retries, async () => {
      const { status, headers, chunks } = await this.#request('GET', path);
      if (status !== 200)
        throw statusError(status, headers, { repository, revision }, this.#options.settings);
      return readListing(parseJson(await text(chunks)));
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
  async open(file: HubFile, from: number): Promise<HttpResponse> {
    const response = await this.#request('GET', pathOf(file), from > 0 ? { range: `bytes=${from}-` } : {});
    if ([200, 206, 416].includes(response.status)) return response;
    throw statusError(response.status, response.headers, file, this.#options.settings);
  }

  /** Sends the token only to the hub. */
  #request(method: HttpRequest['method'], path: string, headers: HttpRequest['headers'] = {}) {
    const { endpoint, token, offline } = this.#options.settings;
    if (offline) throw new HubUnreachable('HF_HUB_OFFLINE is set, so the hub is not asked');
    const hub = new URL(endpoint + path);
    return request(this.#options, {
      method,
      url: hub,
      headers,
      token: token === null ? null : { value: token, origin: hub.origin },
      // The hub describes a file in the headers of the redirect to its storage server.
      isFinal: (response) => method === 'HEAD' && response.headers.has('x-linked-etag'),
    });
  }
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
