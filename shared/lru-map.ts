/** A map in the order of last use, so that the entries used longest ago can be dropped. */
export class LruMap<Key, Value> {
  readonly #entries = new Map<Key, Value>();

  get size(): number {
    return this.#entries.size;
  }

  get(key: Key): Value | undefined {
    const value = this.#entries.get(key);
    if (value !== undefined) this.set(key, value);
    return value;
  }

  set(key: Key, value: Value): void {
    this.#entries.delete(key);
    this.#entries.set(key, value);
  }

  delete(key: Key): void {
    this.#entries.delete(key);
  }

  clear(): void {
    this.#entries.clear();
  }

  /** The entries, used longest ago first. */
  entries(): MapIterator<[Key, Value]> {
    return this.#entries.entries();
  }

  values(): MapIterator<Value> {
    return this.#entries.values();
  }

  /** Drops entries, used longest ago first, as long as there are too many. */
  trim(hasTooMany: () => boolean, onDrop?: (value: Value) => void): void {
    for (const [key, value] of this.#entries) {
      if (!hasTooMany()) return;
      this.#entries.delete(key);
      onDrop?.(value);
    }
  }
}
