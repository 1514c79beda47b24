/** Values that have changed; null = it is gone. */
export type News<Value> = readonly (readonly [id: string, value: Value | null])[];

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

  /** Returns what has changed since the last commit. */
  takeNews(): News<Value> {
    const news: [string, Value | null][] = [];
    for (const id of this.#news) {
      const value = this.values.get(id) ?? null;
      if (value !== null || this.isInTable(id)) this.unwritten.add(id);
      // What has come and gone since the last commit was never stored.
      else if (!this.unwritten.delete(id)) continue;
      news.push([id, value]);
    }
    this.#news.clear();
    return news;
  }

  /** Takes changes from the journal. */
  restore(news: News<Value>): void {
    for (const [id, value] of news) {
      if (value === null) this.delete(id);
      else this.set(id, value);
    }
    this.takeNews();
  }

  protected abstract isInTable(id: string): boolean;

  /** Writes what has changed to the table. */
  abstract write(): void;
}
