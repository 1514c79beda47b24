/** Bytes of a file, or of a buffer in tests. */
export interface ByteSource {
  readonly size: number;
  /** Fills `into` from a position; the caller has checked that the range lies in the file. */
  read(position: number, into: Uint8Array): void;
}

const CHUNK_BYTES = 1 << 20;

/** Keeps a byte order mark, which can be a token. */
const UTF8 = new TextDecoder('utf-8', { ignoreBOM: true });

/** Reads little-endian fields one after another. Compares each length with what is left first. */
export class HeaderCursor {
  readonly #source: ByteSource;
  #chunk = new DataView(new ArrayBuffer(0));
  #chunkStart = 0;
  #position = 0;
  /** What is being read, for errors: a key or a tensor. */
  subject = 'the header';

  constructor(source: ByteSource) {
    this.#source = source;
  }

  get position(): number {
    return this.#position;
  }

  get remaining(): number {
    return this.#source.size - this.#position;
  }

  /** Returns an error about what is being read. */
  fault(message: string): Error {
    return new Error(`${this.subject} ${message}`);
  }

  u32 = (): number => this.#take(4, (view, at) => view.getUint32(at, true));
  /** 64-bit integers beyond 2^53 are rounded; lengths of that size never fit in the file. */
  u64 = (): number => Number(this.#take(8, (view, at) => view.getBigUint64(at, true)));

  /** @throws Error if the text is longer than `limit` bytes or than the rest of the file */
  text(limit: number): string {
    const length = this.u64();
    if (length > limit) throw this.fault(`has a text of ${length} bytes; at most ${limit} are allowed`);
    return UTF8.decode(this.bytes(length));
  }

  /** Returns a copy of the next bytes. */
  bytes(length: number): Uint8Array<ArrayBuffer> {
    if (length > this.remaining) throw this.#truncated(length);
    if (length > CHUNK_BYTES) {
      const bytes = new Uint8Array(length);
      this.#source.read(this.#position, bytes);
      this.#position += length;
      return bytes;
    }
    return this.#take(length, ({ buffer }, at) => new Uint8Array(buffer.slice(at, at + length)));
  }

  /** Passes the chunk and the place of the next bytes in it, and moves behind them. */
  #take<T>(length: number, read: (view: DataView<ArrayBuffer>, at: number) => T): T {
    if (length > this.remaining) throw this.#truncated(length);
    if (this.#position + length > this.#chunkStart + this.#chunk.byteLength) {
      const bytes = new Uint8Array(Math.min(CHUNK_BYTES, this.remaining));
      this.#source.read(this.#position, bytes);
      this.#chunk = new DataView(bytes.buffer);
      this.#chunkStart = this.#position;
    }
    const at = this.#position - this.#chunkStart;
    this.#position += length;
    return read(this.#chunk, at);
  }

  #truncated(length: number): Error {
    return this.fault(`needs ${length} more bytes, but the file ends after ${this.remaining}`);
  }
}
