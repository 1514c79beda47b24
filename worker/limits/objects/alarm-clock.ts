/** Returns whether the object was away when something became due: otherwise its alarm rings within 5 s. */
export const wasAway = (due: number, now: number): boolean => now - due > 5_000;

/** The clock of a Durable Object and its only alarm, which rings at the earliest requested time. */
export class AlarmClock {
  readonly #storage: DurableObjectStorage;
  #latest = 0;
  #setTo: number | null = null;

  constructor(storage: DurableObjectStorage) {
    this.#storage = storage;
  }

  /** Unix milliseconds, never decreasing: the clock may step back if the object moves. */
  now(): number {
    this.#latest = Math.max(this.#latest, Date.now());
    return this.#latest;
  }

  /** Reads what an earlier start has set. To be called before the first `ringBy`. */
  async load(): Promise<void> {
    this.#setTo = await this.#storage.getAlarm();
  }

  /** Sets the alarm to the earliest of these times, unless it rings earlier. Null and Infinity = never. */
  async ringBy(...times: readonly (number | null)[]): Promise<void> {
    const at = Math.min(...times.map((time) => time ?? Infinity));
    if (at === Infinity) return;
    if (this.#setTo !== null && this.#setTo <= at) return;
    this.#setTo = at;
    await this.#storage.setAlarm(at);
  }

  /** To be called first when the alarm rings: it is then no longer set. */
  rang(): void {
    this.#setTo = null;
  }
}
