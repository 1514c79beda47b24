import { afterAlone } from '../timers/request-timers.ts';

/** If so many reads take less than these milliseconds, the platform reads ahead from then on. */
const FAST = { reads: 32, ms: 100 };

/** Milliseconds between two reads of a stream that is read ahead. */
const PAUSE_MS = 10;

/** Bytes that are read ahead at most, so that a slow client still slows the upstream. */
const AHEAD_BYTES = 32_768;

/**
 * Reads the body of a stream. The platform returns each chunk of HTTP by itself, and a read in JavaScript
 * takes five times as long as its own copy. So if an upstream sends faster than that, the platform reads
 * ahead in short pauses, and one read returns all that has arrived. A chunk waits 10 ms at most.
 */
export class StreamReader {
  readonly #now: () => number;
  #reader: ReadableStreamDefaultReader<Uint8Array>;
  #body: ReadableStream<Uint8Array>;
  #ahead: ReadAhead | null = null;
  #reads = 0;
  #countedFrom: number;

  /** @param now Unix milliseconds */
  constructor(body: ReadableStream<Uint8Array>, now: () => number) {
    this.#body = body;
    this.#reader = body.getReader();
    this.#now = now;
    this.#countedFrom = now();
  }

  /** Whether the upstream sends faster than chunks can be read one by one. */
  get isAhead(): boolean {
    return this.#ahead !== null;
  }

  /** Returns undefined at the end. */
  async read(): Promise<Uint8Array | undefined> {
    if (this.#ahead) return this.#ahead.read();
    const { value } = await this.#reader.read();
    this.#reads += 1;
    if (this.#reads === FAST.reads) this.#judge();
    return value;
  }

  async cancel(): Promise<void> {
    await (this.#ahead ?? this.#reader).cancel();
  }

  #judge(): void {
    const now = this.#now();
    if (now - this.#countedFrom < FAST.ms) {
      this.#reader.releaseLock();
      this.#ahead = new ReadAhead(this.#body, this.#now);
    }
    this.#countedFrom = now;
    this.#reads = 0;
  }
}

/**
 * Two branches of a body: the platform moves one of them into a buffer, without JavaScript for each chunk,
 * and so fills the other.
 */
class ReadAhead {
  readonly #now: () => number;
  readonly #seen: ReadableStreamBYOBReader;
  readonly #moved: ReadableStreamBYOBReader;
  /** Used again for each read: to allocate them took an eighth of the time of a fast stream. */
  #seenBytes = new Uint8Array(AHEAD_BYTES);
  #movedBytes = new Uint8Array(AHEAD_BYTES);
  #isMoving = false;
  /** Bytes that were moved and not yet read. */
  #unread = 0;
  #readAt = 0;

  constructor(body: ReadableStream<Uint8Array>, now: () => number) {
    const [seen, moved] = body.tee();
    const { readable, writable } = new IdentityTransformStream();
    moved.pipeTo(writable).catch(() => {});
    this.#now = now;
    this.#seen = seen.getReader({ mode: 'byob' });
    this.#moved = readable.getReader({ mode: 'byob' });
  }

  /** What it returns is valid until the next call. */
  async read(): Promise<Uint8Array | undefined> {
    const early = this.#readAt + PAUSE_MS - this.#now();
    if (early > 0) {
      this.#move();
      await new Promise<void>((resolve) => afterAlone(early, resolve));
    }
    const { value } = await this.#seen.read(this.#seenBytes);
    this.#readAt = this.#now();
    if (!value?.length) return undefined;
    this.#unread -= value.length;
    this.#seenBytes = new Uint8Array(value.buffer);
    return value;
  }

  /** Lets the platform read ahead, unless the caller has yet to read what it has moved. */
  #move(): void {
    if (this.#isMoving || this.#unread > 0) return;
    this.#isMoving = true;
    this.#moved
      .readAtLeast(AHEAD_BYTES, this.#movedBytes)
      .then(({ value }) => {
        if (value === undefined) return;
        this.#unread += value.length;
        this.#movedBytes = new Uint8Array(value.buffer);
        this.#isMoving = false;
      })
      .catch(() => {});
  }

  async cancel(): Promise<void> {
    await Promise.allSettled([this.#seen.cancel(), this.#moved.cancel()]);
  }
}
