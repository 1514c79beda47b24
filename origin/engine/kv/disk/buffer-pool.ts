/** Buffers of one size that are used again and again, so that the memory of waiting chunks is bounded. */
export class BufferPool {
  readonly #size: number;
  readonly #free: Buffer[] = [];
  readonly #waiting: ((buffer: Buffer) => void)[] = [];
  /** Buffers that may still be allocated. */
  #left: number;
  #taken = 0;

  /**
   * @param size bytes of a buffer
   * @param limitBytes of all buffers; there is at least one
   */
  constructor(size: number, limitBytes: number) {
    this.#size = size;
    this.#left = Math.max(1, Math.floor(limitBytes / size));
  }

  /** Returns null if all buffers are in use, or if the system has no memory left. */
  take(): Buffer | null {
    const buffer = this.#free.pop() ?? this.#allocate();
    if (buffer !== null) this.#taken++;
    return buffer;
  }

  /** Waits for a buffer. Returns null if there is none and none will be given back. */
  async wait(): Promise<Buffer | null> {
    const buffer = this.take();
    if (buffer !== null || this.#taken === 0) return buffer;
    return await new Promise((resolve) => this.#waiting.push(resolve));
  }

  /** Gives a buffer back. */
  release(buffer: Buffer): void {
    const next = this.#waiting.shift();
    if (next !== undefined) {
      next(buffer);
      return;
    }
    this.#taken--;
    this.#free.push(buffer);
  }

  #allocate(): Buffer | null {
    if (this.#left === 0) return null;
    try {
      const buffer = Buffer.allocUnsafeSlow(this.#size);
      this.#left--;
      return buffer;
    } catch {
      return null;
    }
  }
}
