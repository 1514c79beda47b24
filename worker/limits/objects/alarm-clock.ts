/** A Durable Object's time: its clock, and its one alarm, which serves whoever wants it earliest. */
export class AlarmClock {
  readonly #storage: DurableObjectStorage;
  #latest = 0;
  #setTo: number | null = null;

  constructor(storage: DurableObjectStorage) {
    this.#storage = storage;
  }

  /** The clock, which may step back when the object moves to another machine, made monotone. */
  now(): number {
    this.#latest = Math.max(this.#latest, Date.now());
    return this.#latest;
  }

  /** The alarm rings at the earliest of these, or before. */
  async ringBy(...times: readonly (number | null)[]): Promise<void> {
    const due = times.filter((at) => at !== null);
    if (due.length === 0) return;
    const at = Math.min(...due);
    if (this.#setTo !== null && this.#setTo <= at) return;
    this.#setTo = at;
    await this.#storage.setAlarm(at);
  }

  /** To be told first of all when it rings: it is not set any more. */
  rang(): void {
    this.#setTo = null;
  }
}
