/** Beyond this many items membership is looked up in a hash set instead of by comparing. */
const MAX_LINEAR_SIZE = 16;
/** Origins are below this number, so that a pair fits a double exactly. */
const MAX_SECOND = 2 ** 30;

/** A set of pairs of small integers in insertion order; iterate by index while adding. */
export class PairSet {
  readonly first: number[] = [];
  readonly second: number[] = [];
  #keys: Set<number> | null = null;

  get size(): number {
    return this.first.length;
  }

  clear(): void {
    this.first.length = 0;
    this.second.length = 0;
    this.#keys = null;
  }

  /** False when the pair was there already. */
  add(first: number, second: number): boolean {
    if (this.first.length < MAX_LINEAR_SIZE) {
      for (let i = 0; i < this.first.length; i++) {
        if (this.first[i] === first && this.second[i] === second) return false;
      }
    } else {
      this.#keys ??= new Set(this.first.map((value, i) => value * MAX_SECOND + this.second[i]!));
      const key = first * MAX_SECOND + second;
      if (this.#keys.has(key)) return false;
      this.#keys.add(key);
    }
    this.first.push(first);
    this.second.push(second);
    return true;
  }
}
