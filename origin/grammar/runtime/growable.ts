/** Int32 storage that doubles when it is full. `data` is replaced then: read it again after every `reserve`. */
export class GrowableInt32 {
  data: Int32Array;
  length = 0;

  constructor(capacity = 1024) {
    this.data = new Int32Array(capacity);
  }

  /** Makes room for `count` further values, zero from the start, and answers where they begin. */
  reserve(count: number): number {
    const start = this.length;
    this.length += count;
    if (this.length > this.data.length) {
      const grown = new Int32Array(Math.max(this.length, 2 * this.data.length));
      grown.set(this.data);
      this.data = grown;
    }
    return start;
  }
}
