/** Up to this size, membership is tested by comparison; beyond it, by a hash set. */
const MAX_LINEAR_SIZE = 16;
/** The second number is below this, so that a pair is exact as a double. */
const MAX_SECOND = 2 ** 30;

/** A set of pairs of small integers in insertion order. It may grow while it is iterated by index. */
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

  /** Returns false if the set already contains the pair. */
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
