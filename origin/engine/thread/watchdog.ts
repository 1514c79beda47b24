interface WatchdogOptions {
  /** Longest silence of a thread that was asked for a sign of life. */
  readonly stallMs: number;
  /** Milliseconds. */
  readonly now: () => number;
  readonly hasWork: () => boolean;
  /** Asks the thread for a sign of life; `alive` is its answer. */
  readonly ping: () => void;
  /** Called once. */
  readonly onStall: () => void;
}

const MAX_PERIOD_MS = 1000;

/** Detects a thread that hangs: it has work, but does not reply between two steps. */
export class Watchdog {
  readonly #options: WatchdogOptions;
  readonly #periodMs: number;
  #timer: NodeJS.Timeout | null = null;
  #tickedAt = 0;
  #awaitsReply = false;
  #silentMs = 0;

  constructor(options: WatchdogOptions) {
    this.#options = options;
    this.#periodMs = Math.min(MAX_PERIOD_MS, options.stallMs / 10);
  }

  start(): void {
    this.#tickedAt = this.#options.now();
    this.#timer = setInterval(() => this.#tick(), this.#periodMs).unref();
  }

  stop(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
  }

  alive(): void {
    this.#awaitsReply = false;
  }

  #tick(): void {
    const { now, stallMs, hasWork, ping, onStall } = this.#options;
    const tickedAt = now();
    // A reply cannot arrive while this thread itself is blocked or suspended.
    const elapsed = Math.min(tickedAt - this.#tickedAt, 2 * this.#periodMs);
    this.#tickedAt = tickedAt;
    if (!this.#awaitsReply) {
      if (!hasWork()) return;
      this.#awaitsReply = true;
      this.#silentMs = 0;
      ping();
      return;
    }
    this.#silentMs += elapsed;
    if (this.#silentMs < stallMs) return;
    this.stop();
    onStall();
  }
}
