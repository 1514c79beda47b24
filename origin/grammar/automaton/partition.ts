/** A refinable partition of 0 … size − 1. The elements of a set are contiguous, marked ones first. */
export class Partition {
  sets: number;
  readonly elements: Int32Array;
  readonly setOf: Int32Array;
  readonly start: Int32Array;
  readonly end: Int32Array;
  readonly #position: Int32Array;
  readonly #marked: Int32Array;
  readonly #markedSets: number[] = [];

  constructor(size: number) {
    this.sets = size > 0 ? 1 : 0;
    this.elements = new Int32Array(size).map((_, i) => i);
    this.#position = this.elements.slice();
    this.setOf = new Int32Array(size);
    this.start = new Int32Array(size + 1);
    this.end = new Int32Array(size + 1);
    this.end[0] = size;
    this.#marked = new Int32Array(size + 1);
  }

  mark(element: number): void {
    const set = this.setOf[element]!;
    const place = this.#position[element]!;
    const target = this.start[set]! + this.#marked[set]!;
    if (place < target) return;
    this.#swap(place, target);
    if (this.#marked[set]!++ === 0) this.#markedSets.push(set);
  }

  /** Splits each set into marked and unmarked elements. The smaller part becomes the new set. */
  split(): void {
    for (let set = this.#markedSets.pop(); set !== undefined; set = this.#markedSets.pop()) {
      const middle = this.start[set]! + this.#marked[set]!;
      this.#marked[set] = 0;
      if (middle === this.end[set]) continue;
      const created = this.sets++;
      if (middle - this.start[set]! <= this.end[set]! - middle) {
        this.start[created] = this.start[set]!;
        this.end[created] = this.start[set] = middle;
      } else {
        this.end[created] = this.end[set]!;
        this.start[created] = this.end[set] = middle;
      }
      for (let i = this.start[created]!; i < this.end[created]!; i++) {
        this.setOf[this.elements[i]!] = created;
      }
    }
  }

  /** Replaces the partition by one set per key. */
  groupBy(keys: readonly number[]): void {
    const groups = new Map<number, number[]>();
    keys.forEach((key, element) => {
      const group = groups.get(key);
      if (group) group.push(element);
      else groups.set(key, [element]);
    });
    this.sets = 0;
    let place = 0;
    for (const group of groups.values()) {
      this.start[this.sets] = place;
      for (const element of group) {
        this.elements[place] = element;
        this.setOf[element] = this.sets;
        this.#position[element] = place++;
      }
      this.end[this.sets++] = place;
    }
  }

  #swap(a: number, b: number): void {
    const x = this.elements[a]!;
    const y = this.elements[b]!;
    this.elements[a] = y;
    this.elements[b] = x;
    this.#position[y] = a;
    this.#position[x] = b;
  }
}
