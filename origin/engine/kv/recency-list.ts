/** A member of a list; null at the list's ends. */
export interface Linked<T> {
  older: T | null;
  newer: T | null;
}

/** A doubly linked list in the order of last use. Every operation takes constant time. */
export class RecencyList<T extends Linked<T>> {
  #oldest: T | null = null;
  #newest: T | null = null;
  #size = 0;

  get oldest(): T | null {
    return this.#oldest;
  }

  get size(): number {
    return this.#size;
  }

  /** Adds an item that is not in the list: before `newer`, or as the newest. */
  add(item: T, newer: T | null = null): void {
    const older = newer === null ? this.#newest : newer.older;
    item.older = older;
    item.newer = newer;
    if (older === null) this.#oldest = item;
    else older.newer = item;
    if (newer === null) this.#newest = item;
    else newer.older = item;
    this.#size++;
  }

  remove(item: T): void {
    const { older, newer } = item;
    if (older === null) this.#oldest = newer;
    else older.newer = newer;
    if (newer === null) this.#newest = older;
    else newer.older = older;
    item.older = null;
    item.newer = null;
    this.#size--;
  }

  /** Makes an item the newest. */
  use(item: T): void {
    this.remove(item);
    this.add(item);
  }
}
