import { createHash } from 'node:crypto';
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { type LocalServer, serve } from '../../../support/local-server.ts';

export const COMMIT = 'c0ffee00c0ffee00c0ffee00c0ffee00c0ffee00';

export interface SeenRequest {
  readonly server: 'hub' | 'storage';
  readonly method: string;
  readonly path: string;
  readonly range: string | undefined;
  readonly authorization: string | undefined;
}

/** Faults of the next responses for a file. */
export interface Fault {
  /** Bytes of the body after which each of the next connections is closed. */
  cuts?: number[];
  /** Statuses of the next responses. */
  statuses?: number[];
  /** Headers of the responses with these statuses. */
  headers?: Record<string, string>;
  /** Sent instead of the file, under the checksum of the file. */
  content?: Buffer;
  /** Sends the body in pieces of this many bytes and awaits `pause` after each. */
  slowly?: { bytes: number; pause: () => Promise<unknown> };
  /** Sends headers, then nothing, and keeps the connection open. */
  silent?: boolean;
}

export interface FakeRepository {
  readonly files: Record<string, string | Buffer>;
  /** Files of at least this many bytes are on the storage server and have a SHA-256. */
  readonly largeFrom?: number;
  /** Answers 403 for every file, as gated repositories do. */
  readonly gated?: boolean;
  /** Lists names without sizes and checksums, as some mirrors do. */
  readonly namesOnly?: boolean;
  /** Commit of `main`; absent = COMMIT. */
  readonly commit?: string;
  /** Wrong sizes in the listing. */
  readonly sizes?: Record<string, number>;
}

/**
 * A hub on two ports: one lists repositories and serves small files, the other is the storage server for
 * large files. Written from the hub's public protocol, not from the client under test.
 */
export class FakeHub {
  readonly repositories = new Map<string, FakeRepository>();
  readonly faults = new Map<string, Fault>();
  readonly seen: SeenRequest[] = [];
  /** False: ignores the Range header and sends the whole file with 200. */
  supportsRange = true;
  /** Bytes of a file that the client has on disk. A cut waits for them, as unread bytes are lost. */
  bytesOnDisk: (path: string) => number = () => Infinity;
  #hub!: LocalServer;
  #storage!: LocalServer;

  static async start(): Promise<FakeHub> {
    const hub = new FakeHub();
    const recording =
      (server: SeenRequest['server'], answer: RequestListener): RequestListener =>
      (request, response) => {
        const { method = '', headers } = request;
        const { range, authorization } = headers;
        hub.seen.push({ server, method, path: pathOf(request), range, authorization });
        answer(request, response);
      };
    hub.#hub = await serve(recording('hub', (request, response) => hub.#answerHub(request, response)));
    hub.#storage = await serve(
      recording('storage', (request, response) => hub.#answerStorage(request, response)),
      'localhost', // IPv4 or IPv6
    );
    return hub;
  }

  get endpoint(): string {
    return this.#hub.url;
  }

  /** Another host and port than the hub's. */
  get storageAddress(): string {
    return this.#storage.url;
  }

  /** GET requests for the content of a file, without redirects. */
  downloads(file: string): SeenRequest[] {
    const stored = this.seen.some(({ server, path }) => server === 'storage' && path.endsWith(`/${file}`));
    return this.seen.filter(
      ({ server, method, path }) =>
        method === 'GET' && path.endsWith(`/${file}`) && server === (stored ? 'storage' : 'hub'),
    );
  }

  async stop(): Promise<void> {
    await Promise.all([this.#hub.stop(), this.#storage.stop()]);
  }

  #answerHub(request: IncomingMessage, response: ServerResponse): void {
    const path = pathOf(request);
    const listing = /^\/api\/models\/([^/]+\/[^/]+)\/revision\/(.+)$/.exec(path);
    const file = /^\/([^/]+\/[^/]+)\/resolve\/([^/]+)\/(.+)$/.exec(path);
    const repository = this.repositories.get(listing?.[1] ?? file?.[1] ?? '');
    if (repository === undefined) {
      sendError(response, 401, 'RepoNotFound');
      return;
    }
    if (listing !== null) {
      if (!['main', 'refs/pr/1', COMMIT].includes(listing[2]!)) {
        sendError(response, 404, 'RevisionNotFound');
        return;
      }
      response.end(JSON.stringify(modelInfo(repository)));
      return;
    }
    if (repository.gated) {
      sendError(response, 403, 'GatedRepo');
      return;
    }
    const name = file![3]!;
    if (repository.files[name] === undefined) {
      sendError(response, 404, 'EntryNotFound');
      return;
    }
    const content = Buffer.from(repository.files[name]);
    if (isLarge(repository, content)) this.#redirect(response, name, content);
    else {
      response.setHeader('etag', `"${gitDigest(content)}"`);
      this.#send(request, response, name, content);
    }
  }

  #redirect(response: ServerResponse, path: string, content: Buffer): void {
    response.writeHead(302, {
      location: `${this.storageAddress}/signed/${path}?signature=secret`,
      'x-linked-etag': `"${sha256(content)}"`,
      'x-linked-size': content.length,
      'x-repo-commit': COMMIT,
    });
    response.end('moved');
  }

  #answerStorage(request: IncomingMessage, response: ServerResponse): void {
    const path = pathOf(request).slice('/signed/'.length);
    const repository = [...this.repositories.values()].find(({ files }) => files[path] !== undefined);
    this.#send(request, response, path, Buffer.from(repository!.files[path]!));
  }

  #send(request: IncomingMessage, response: ServerResponse, path: string, whole: Buffer): void {
    const fault = this.faults.get(path) ?? {};
    const status = fault.statuses?.shift();
    if (status !== undefined) {
      sendError(response, status, '', fault.headers);
      return;
    }
    const content = fault.content ?? whole;
    const range = this.supportsRange ? /^bytes=(\d+)-$/.exec(request.headers.range ?? '') : null;
    const from = Number(range?.[1] ?? 0);
    if (from > 0 && from >= content.length) {
      sendError(response, 416, '');
      return;
    }
    const body = content.subarray(from);
    response.writeHead(from > 0 ? 206 : 200, {
      'content-length': body.length,
      ...(from > 0 ? { 'content-range': `bytes ${from}-${content.length - 1}/${content.length}` } : {}),
    });
    const cut = request.method === 'GET' ? fault.cuts?.shift() : undefined;
    if (cut !== undefined)
      response.write(body.subarray(0, cut), () => void this.#cut(response, path, from + cut));
    else if (fault.silent) response.flushHeaders();
    else if (fault.slowly) void sendSlowly(response, body, fault.slowly);
    else response.end(body);
  }

  async #cut(response: ServerResponse, path: string, sent: number): Promise<void> {
    while (this.bytesOnDisk(path) < sent && !response.destroyed) await sleep(5);
    setTimeout(() => response.destroy(), 20);
  }
}

const pathOf = (request: IncomingMessage): string =>
  decodeURIComponent(new URL(request.url ?? '', 'http://hub').pathname);

async function sendSlowly(
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

function sendError(response: ServerResponse, status: number, code: string, headers = {}): void {
  response.writeHead(status, { ...headers, ...(code === '' ? {} : { 'x-error-code': code }) });
  response.end(`error ${status}`);
}

function modelInfo(repository: FakeRepository): unknown {
  const siblings = Object.entries(repository.files).map(([rfilename, given]) => {
    const content = Buffer.from(given);
    if (repository.namesOnly) return { rfilename };
    const size = repository.sizes?.[rfilename] ?? content.length;
    const lfs = { sha256: sha256(content), size, pointerSize: 134 };
    return { rfilename, size, blobId: gitDigest(content), ...(isLarge(repository, content) ? { lfs } : {}) };
  });
  return {
    id: 'ignored',
    sha: repository.commit ?? COMMIT,
    gated: repository.gated ? 'auto' : false,
    siblings,
  };
}

const isLarge = ({ largeFrom = 1000 }: FakeRepository, content: Buffer): boolean =>
  content.length >= largeFrom;

export const sha256 = (content: Buffer): string => createHash('sha256').update(content).digest('hex');

/** The checksum that `git hash-object` prints. */
export const gitDigest = (content: Buffer): string =>
  createHash('sha1')
    .update(Buffer.concat([Buffer.from(`blob ${content.length}\0`), content]))
    .digest('hex');
