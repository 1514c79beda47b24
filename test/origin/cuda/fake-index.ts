import { createHash } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { crc32, deflateRawSync } from 'node:zlib';
import type { Wheel } from '../../../origin/cuda/wheels.ts';
import { type LocalServer, serve } from '../../support/local-server.ts';

/** Writes a ZIP archive: a local header and the deflated bytes of each file, then the directory. */
export function zip(files: Readonly<Record<string, Buffer>>): Buffer {
  const parts: Buffer[] = [];
  const directory: Buffer[] = [];
  let offset = 0;
  for (const [name, content] of Object.entries(files)) {
    const data = deflateRawSync(content);
    const common = Buffer.alloc(26);
    common.writeUInt16LE(20, 0);
    common.writeUInt16LE(8, 4);
    common.writeUInt32LE(crc32(content), 10);
    common.writeUInt32LE(data.length, 14);
    common.writeUInt32LE(content.length, 18);
    common.writeUInt16LE(name.length, 22);
    // Archivers may write other extra fields in the local header than in the directory.
    common.writeUInt16LE(4, 24);
    const local = Buffer.concat([Buffer.from('PK\x03\x04'), common, Buffer.from(`${name}xxxx`), data]);
    const entry = Buffer.alloc(46);
    entry.write('PK\x01\x02');
    common.copy(entry, 6, 0, 24);
    entry.writeUInt32LE(offset, 42);
    directory.push(entry, Buffer.from(name));
    parts.push(local);
    offset += local.length;
  }
  const end = Buffer.alloc(22);
  end.write('PK\x05\x06');
  end.writeUInt16LE(directory.length / 2, 10);
  end.writeUInt32LE(Buffer.concat(directory).length, 12);
  end.writeUInt32LE(offset, 16);
  return Buffer.concat([...parts, ...directory, end]);
}

/** Returns a wheel of a project with libraries beside a file that is not wanted. */
export function wheelOf(project: string, libraries: Readonly<Record<string, Buffer>>) {
  const inside = Object.entries(libraries).map(
    ([name, bytes]) => [`nvidia/cu13/lib/${name}`, bytes] as const,
  );
  const content = zip(
    Object.fromEntries([['nvidia/cu13/lib/libother.so', Buffer.from('other')] as const, ...inside]),
  );
  const checksum = createHash('sha256').update(content).digest('hex');
  const file = `${project.replaceAll('-', '_')}-13.0-py3-none-any.whl`;
  const wheel: Wheel = { project, file, size: content.length, checksum, libraries: Object.keys(libraries) };
  return { wheel, content };
}

/** A package index with one page per project, whose links lead to files elsewhere on the same server. */
export class FakeIndex {
  readonly files = new Map<string, Buffer>();
  /** Bytes after which each of the next connections for a file ends. */
  readonly cuts: number[] = [];
  /** Paths, with the first byte of a range. */
  readonly seen: string[] = [];
  #server!: LocalServer;

  static async start(): Promise<FakeIndex> {
    const index = new FakeIndex();
    index.#server = await serve((request, response) => index.#answer(request, response));
    return index;
  }

  get url(): string {
    return `${this.#server.url}/simple`;
  }

  offer({ wheel, content }: ReturnType<typeof wheelOf>): Wheel {
    this.files.set(wheel.file, content);
    return wheel;
  }

  stop(): Promise<void> {
    return this.#server.stop();
  }

  #answer({ url = '', headers }: IncomingMessage, response: ServerResponse): void {
    const from = Number(/^bytes=(\d+)-$/.exec(headers.range ?? '')?.[1] ?? 0);
    this.seen.push(from > 0 ? `${url} from ${from}` : url);
    const [, project] = /^\/simple\/([\w-]+)\/$/.exec(url) ?? [];
    if (project !== undefined) {
      const prefix = project.replaceAll('-', '_');
      const names = [...this.files.keys()].filter((name) => name.startsWith(prefix));
      const links = names.map((name) => `<a href="../../files/${name}#sha256=00">${name}</a>`);
      response.setHeader('content-type', 'text/html').end(links.join('\n'));
      return;
    }
    const content = this.files.get(url.replace('/files/', ''));
    if (content === undefined) return void response.writeHead(404).end();
    const body = content.subarray(from);
    response.writeHead(from > 0 ? 206 : 200, {
      'content-length': body.length,
      'content-range': `bytes ${from}-${content.length - 1}/${content.length}`,
    });
    const cut = this.cuts.shift();
    if (cut === undefined) response.end(body);
    else response.write(body.subarray(0, cut), () => response.destroy());
  }
}
