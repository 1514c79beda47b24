import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

/**
 * A hub on two ports: the one that lists and serves small files, and the store it sends large files to. Written from
 * the hub's public protocol, not from the client under test.
 */

export const COMMIT = 'c0ffee00c0ffee00c0ffee00c0ffee00c0ffee00';

export interface SeenRequest {
  readonly server: 'hub' | 'store';
  readonly method: string;
  readonly path: string;
  readonly range: string | undefined;
  readonly authorization: string | undefined;
}

/** How the next transfers of a file go wrong. */
export interface Fault {
  /** Bytes of the body after which each of the next transfers is cut. */
  cuts?: number[];
  /** Statuses of the next answers. */
  statuses?: number[];
  /** Headers beside those statuses. */
  headers?: Record<string, string>;
  /** Sends these bytes instead of the file's, under the file's checksum. */
  content?: Buffer;
  /** Sends the body in pieces of this many bytes, and waits after each. */
  slowly?: { bytes: number; pause: () => Promise<unknown> };
  /** Sends headers and then nothing, without an end. */
  silent?: boolean;
}

export interface FakeRepository {
  readonly files: Record<string, string | Buffer>;
  /** Files from this size on live in the store and are known by their SHA-256. */
  readonly largeFrom?: number;
  /** Answers 403 to everybody, as gated repositories do. */
  readonly gated?: boolean;
  /** Lists names without sizes and checksums, as some mirrors do. */
  readonly namesOnly?: boolean;
  /** Tells another size for these files. */
  readonly sizes?: Record<string, number>;
}

export class FakeHub {
  readonly repositories = new Map<string, FakeRepository>();
  readonly faults = new Map<string, Fault>();
  readonly seen: SeenRequest[] = [];
  /** False: a Range header is ignored and the whole file is sent with 200. */
  ranges = true;
  /** Bytes of a file that the client holds; a cut waits until it holds what was sent before. */
  held: (path: string) => number = () => Infinity;
  readonly #hub: Server;
  readonly #store: Server;

  static async start(): Promise<FakeHub> {
    const hub = new FakeHub();
    hub.#hub.listen(0, '127.0.0.1');
    // Whichever address that is here.
    hub.#store.listen(0, 'localhost');
    await Promise.all([hub.#hub, hub.#store].map((server) => once(server, 'listening')));
    return hub;
  }

  private constructor() {
    const answering =
      (server: SeenRequest['server'], answer: (request: IncomingMessage, response: ServerResponse) => void) =>
      (request: IncomingMessage, response: ServerResponse) => {
        const { method = '', url = '', headers } = request;
        const path = decodeURIComponent(new URL(url, 'http://hub').pathname);
        this.seen.push({ server, method, path, range: headers.range, authorization: headers.authorization });
        answer(request, response);
      };
    this.#hub = createServer(answering('hub', (request, response) => this.#answerHub(request, response)));
    this.#store = createServer(
      answering('store', (request, response) => this.#answerStore(request, response)),
    );
  }

  get endpoint(): string {
    return `http://127.0.0.1:${(this.#hub.address() as AddressInfo).port}`;
  }

  /** Another host and port than the hub's. */
  get storeAddress(): string {
    return `http://localhost:${(this.#store.address() as AddressInfo).port}`;
  }

  /** GET requests for the content of a file, redirects not counted. */
  transfers(file: string): SeenRequest[] {
    const moved = this.seen.some(({ server, path }) => server === 'store' && path.endsWith(`/${file}`));
    return this.seen.filter(
      ({ server, method, path }) =>
        method === 'GET' && path.endsWith(`/${file}`) && server === (moved ? 'store' : 'hub'),
    );
  }

  async stop(): Promise<void> {
    for (const server of [this.#hub, this.#store]) {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    }
  }

  #answerHub(request: IncomingMessage, response: ServerResponse): void {
    const path = decodeURIComponent(new URL(request.url ?? '', this.endpoint).pathname);
    const listing = /^\/api\/models\/([^/]+\/[^/]+)\/revision\/(.+)$/.exec(path);
    const file = /^\/([^/]+\/[^/]+)\/resolve\/([^/]+)\/(.+)$/.exec(path);
    const repository = this.repositories.get(listing?.[1] ?? file?.[1] ?? '');
    if (repository === undefined) {
      refuse(response, 401, 'RepoNotFound');
      return;
    }
    if (listing !== null) {
      if (!['main', 'refs/pr/1', COMMIT].includes(listing[2]!)) {
        refuse(response, 404, 'RevisionNotFound');
        return;
      }
      response.end(JSON.stringify(describe(repository)));
      return;
    }
    if (repository.gated) {
      refuse(response, 403, 'GatedRepo');
      return;
    }
    const content = repository.files[file![3]!];
    if (content === undefined) {
      refuse(response, 404, 'EntryNotFound');
      return;
    }
    this.#answerFile(request, response, repository, file![3]!, Buffer.from(content));
  }

  #answerFile(
    request: IncomingMessage,
    response: ServerResponse,
    repository: FakeRepository,
    path: string,
    content: Buffer,
  ): void {
    if (!isLarge(repository, content)) {
      response.setHeader('etag', `"${gitDigest(content)}"`);
      this.#send(request, response, path, content);
      return;
    }
    response.writeHead(302, {
      location: `${this.storeAddress}/signed/${path}?signature=secret`,
      'x-linked-etag': `"${sha256(content)}"`,
      'x-linked-size': content.length,
      'x-repo-commit': COMMIT,
    });
    response.end('moved');
  }

  #answerStore(request: IncomingMessage, response: ServerResponse): void {
    const path = decodeURIComponent(new URL(request.url ?? '', this.endpoint).pathname).slice(
      '/signed/'.length,
    );
    const repository = [...this.repositories.values()].find(({ files }) => files[path] !== undefined);
    this.#send(request, response, path, Buffer.from(repository!.files[path]!));
  }

  /** What a client has been sent and not yet read is lost with the connection; nobody shall depend on that race. */
  async #destroy(response: ServerResponse, path: string, sent: number): Promise<void> {
    while (this.held(path) < sent && !response.destroyed) await sleep(5);
    setTimeout(() => response.destroy(), 20);
  }

  #send(request: IncomingMessage, response: ServerResponse, path: string, whole: Buffer): void {
    const fault = this.faults.get(path) ?? {};
    const status = fault.statuses?.shift();
    if (status !== undefined) {
      refuse(response, status, '', fault.headers);
      return;
    }
    const content = fault.content ?? whole;
    const from = this.ranges ? Number(/^bytes=(\d+)-$/.exec(request.headers.range ?? '')?.[1] ?? 0) : 0;
    if (from > 0 && from >= content.length) {
      refuse(response, 416, '');
      return;
    }
    const body = content.subarray(from);
    response.writeHead(from > 0 ? 206 : 200, {
      'content-length': body.length,
      ...(from > 0 ? { 'content-range': `bytes ${from}-${content.length - 1}/${content.length}` } : {}),
    });
    const cut = request.method === 'GET' ? fault.cuts?.shift() : undefined;
    if (cut !== undefined)
      response.write(body.subarray(0, cut), () => void this.#destroy(response, path, from + cut));
    else if (fault.silent) response.flushHeaders();
    else if (fault.slowly) void trickle(response, body, fault.slowly);
    else response.end(body);
  }
}

async function trickle(
  response: ServerResponse,
  body: Buffer,
  { bytes, pause }: NonNullable<Fault['slowly']>,
) {
  for (let at = 0; at < body.length && !response.destroyed; at += bytes) {
    response.write(body.subarray(at, at + bytes));
    await pause();
  }
  response.end();
}

function refuse(response: ServerResponse, status: number, code: string, headers = {}): void {
  response.writeHead(status, { ...headers, ...(code === '' ? {} : { 'x-error-code': code }) });
  response.end(`error ${status}`);
}

function describe(repository: FakeRepository): unknown {
  const siblings = Object.entries(repository.files).map(([rfilename, given]) => {
    const content = Buffer.from(given);
    if (repository.namesOnly) return { rfilename };
    const size = repository.sizes?.[rfilename] ?? content.length;
    const lfs = { sha256: sha256(content), size, pointerSize: 134 };
    return { rfilename, size, blobId: gitDigest(content), ...(isLarge(repository, content) ? { lfs } : {}) };
  });
  return { id: 'ignored', sha: COMMIT, gated: repository.gated ? 'auto' : false, siblings };
}

const isLarge = ({ largeFrom = 1000 }: FakeRepository, content: Buffer): boolean =>
  content.length >= largeFrom;

export const sha256 = (content: Buffer): string => createHash('sha256').update(content).digest('hex');

/** What `git hash-object` prints. */
export const gitDigest = (content: Buffer): string =>
  createHash('sha1')
    .update(Buffer.concat([Buffer.from(`blob ${content.length}\0`), content]))
    .digest('hex');
