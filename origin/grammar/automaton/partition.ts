/** A refinable partition of 0 … size − 1: elements of a set stand together, marked ones in front. */
export class Partition {
  sets: number;
  readonly elements: Int32Array;
  readonly setOf: Int32Array;
  readonly first: Int32Array;
  readonly past: Int32Array;
  readonly #place: Int32Array;
  readonly #marked: Int32Array;
  readonly #touched: number[] = [];

  constructor(size: number) {
    this.sets = size > 0 ? 1 : 0;
    this.elements = Int32Array.from({ length: size }, (_, i) => i);
    this.#place = this.elements.slice();
    this.setOf = new Int32Array(size);
    this.first = new Int32Array(size + 1);
    this.past = new Int32Array(size + 1);
    this.past[0] = size;
    this.#marked = new Int32Array(size + 1);
  }

  mark(element: number): void {
    const set = this.setOf[element]!;
    const place = this.#place[element]!;
    const target = this.first[set]! + this.#marked[set]!;
    if (place < target) return;
    this.#swap(place, target);
    if (this.#marked[set]!++ === 0) this.#touched.push(set);
  }

  /** Separates the marked elements of each set from the others; the smaller part becomes the new set. */
  split(): void {
    for (let set = this.#touched.pop(); set !== undefined; set = this.#touched.pop()) {
      const middle = this.first[set]! + this.#marked[set]!;
      this.#marked[set] = 0;
      if (middle === this.past[set]) continue;
      const created = this.sets++;
      if (middle - this.first[set]! <= this.past[set]! - middle) {
        this.first[created] = this.first[set]!;
        this.past[created] = this.first[set] = middle;
      } else {
        this.past[created] = this.past[set]!;
        this.first[created] = this.past[set] = middle;
      }
      for (let i = this.first[created]!; i < this.past[created]!; i++) {
        this.setOf[this.elements[i]!] = created;
      }
    }
  }

  /** Starts over with one set per key. */
  groupBy(keys: readonly number[]): void {
    this.elements.sort((a, b) => keys[a]! - keys[b]!);
    this.sets = 0;
    this.elements.forEach((element, i) => {
      const fresh = i === 0 || keys[element] !== keys[this.elements[i - 1]!];
      if (fresh) this.first[this.sets++] = i;
      this.past[this.sets - 1] = i + 1;
      this.setOf[element] = this.sets - 1;
      this.#place[element] = i;
    });
  }

  #swap(a: number, b: number): void {
    const x = this.elements[a]!;
    const y = this.elements[b]!;
    this.elements[a] = y;
    this.elements[b] = x;
    this.#place[y] = a;
    this.#place[x] = b;
  }
}
