import { isIn } from './masked-copy.ts';

/** A set of ids below a bound, which is emptied in constant time. One object serves all rows. */
export class IdSet {
  /** The first `count`, in the order in which they were added. */
  readonly ids: Int32Array;
  count = 0;
  /** Bit set of the ids that can be added; null = all. */
  mask: Uint32Array | null = null;
  /** By id: the round in which it was added last. */
  readonly #addedIn: Int32Array;
  /** By id: its place among `ids`, if it is there. */
  readonly #places: Int32Array;
  #round = 0;

  constructor(bound: number) {
    this.ids = new Int32Array(bound);
    this.#addedIn = new Int32Array(bound);
    this.#places = new Int32Array(bound);
  }

  clear(mask: Uint32Array | null = null): void {
    this.mask = mask;
    this.count = 0;
    this.#round = (this.#round + 1) | 0;
  }

  has(id: number): boolean {
    return this.#addedIn[id] === this.#round;
  }

  /** Returns the place of an id among `ids`; −1 = it is not there. */
  placeOf(id: number): number {
    return this.has(id) ? this.#places[id]! : -1;
  }

  /** Returns false if the id is there already, or cannot be added. */
  add(id: number): boolean {
    if (this.has(id) || id >= this.ids.length || (this.mask !== null && !isIn(this.mask, id))) return false;
    this.#addedIn[id] = this.#round;
    this.#places[id] = this.count;
    this.ids[this.count++] = id;
    return true;
  }
}
