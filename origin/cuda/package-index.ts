import { text } from 'node:stream/consumers';
import type { BlobSource } from '../hub/fetch/download.ts';
import { type HttpOptions, type HttpResponse, request } from '../hub/fetch/http.ts';
import { HubError, TransientHubError } from '../hub/fetch/hub-error.ts';
import { type RetryOptions, withRetries } from '../hub/fetch/retries.ts';
import type { Wheel } from './wheels.ts';

const PYPI = 'https://pypi.org/simple';

interface PackageIndexOptions extends HttpOptions {
  /** Address of the index; empty or absent = PyPI. */
  readonly url: string | undefined;
  readonly retries: RetryOptions;
}

/** A Python package index with PyPI's "simple" pages (PEP 503). */
export class PackageIndex {
  readonly #url: URL;
  readonly #options: PackageIndexOptions;

  /** @throws HubError if the address is none */
  constructor(options: PackageIndexOptions) {
    const url = URL.parse(options.url || PYPI);
    if (url === null || !/^https?:$/.test(url.protocol) || url.username || url.password) {
      throw new HubError('PIP_INDEX_URL must be an http or https address without user and password');
    }
    if (!url.pathname.endsWith('/')) url.pathname += '/';
    this.#url = url;
    this.#options = options;
  }

  /** Finds a wheel. @throws HubError if the index does not have it */
  async source({ project, file }: Wheel): Promise<BlobSource> {
    const { retries } = this.#options;
    const page = new URL(`${project}/`, this.#url);
    const url = await withRetries(retries, async () => {
      const response = await this.#get(page, file);
      return addressIn(await text(response.chunks), file, response.url);
    });
    if (url === null) throw new HubError(`${page.host} has no ${file}`);
    const open = (from: number) => this.#get(url, file, from > 0 ? { range: `bytes=${from}-` } : {});
    return { name: file, retries, open };
  }

  async #get(url: URL, file: string, headers: Record<string, string> = {}): Promise<HttpResponse> {
    const response = await request(this.#options, { method: 'GET', url, headers });
    const { status } = response;
    if ([200, 206, 416].includes(status)) return response;
    const message = `${url.host} answered ${status} for ${file}`;
    throw status === 408 || status === 429 || status >= 500
      ? new TransientHubError(message)
      : new HubError(message);
  }
}

/** Returns the link of a page to a file. */
function addressIn(html: string, file: string, page: URL): URL | null {
  const links = [...html.matchAll(/\bhref="([^"#]+)/g)].map((match) => match[1]!);
  const link = links.find((link) => link.endsWith(`/${file}`) || link === file);
  return link === undefined ? null : URL.parse(link, page.href);
}
