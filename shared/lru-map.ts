/** A map in the order of last use, so that the entries used longest ago can be dropped. */
export class LruMap<Key, Value> extends Map<Key, Value> {
  override get(key: Key): Value | undefined {
    const value = super.get(key);
    if (value !== undefined) this.set(key, value);
    return value;
  }

  override set(key: Key, value: Value): this {
    this.delete(key);
    return super.set(key, value);
  }

  /** Drops entries, used longest ago first, as long as there are too many. */
  trim(hasTooMany: () => boolean, onDrop?: (value: Value) => void): void {
    for (const [key, value] of this) {
      if (!hasTooMany()) return;
      this.delete(key);
      onDrop?.(value);
    }
  }
}
