/**
 * Values by id, held once in memory. Those that have changed go to the journal with the next commit, and to
 * their table with the next checkpoint.
 */
export abstract class StoredValues<Value> {
  protected readonly values = new Map<string, Value>();
  /** Ids of values that have changed since the last checkpoint. */
  protected readonly unwritten = new Set<string>();
  /** Ids of values that have changed since the last commit. */
  readonly #news = new Set<string>();

  get(id: string): Value | undefined {
    return this.values.get(id);
  }

  /** Also to be called when a value has changed in place. */
  set(id: string, value: Value): void {
    this.values.set(id, value);
    this.#news.add(id);
  }

  delete(id: string): void {
    this.values.delete(id);
    this.#news.add(id);
  }

  all(): readonly (readonly [id: string, value: Value])[] {
    return [...this.values];
  }

  /** Returns what has changed since the last commit; null = it is gone. */
  takeNews(): Record<string, Value | null> {
    const news: Record<string, Value | null> = {};
    for (const id of this.#news) {
      const value = this.values.get(id) ?? null;
      // What has come and gone since then was never stored.
      if (value === null && !this.unwritten.has(id) && !this.isInTable(id)) continue;
      this.unwritten.add(id);
      news[id] = value;
    }
    this.#news.clear();
    return news;
  }

  /** Takes changes from the journal. */
  restore(news: Readonly<Record<string, Value | null>>): void {
    for (const [id, value] of Object.entries(news)) {
      if (value === null) this.delete(id);
      else this.set(id, value);
    }
    this.takeNews();
  }

  protected abstract isInTable(id: string): boolean;

  /** Writes what has changed to the table. */
  abstract write(): void;
}
