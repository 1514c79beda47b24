/**
 * A row of logits with single numbers changed, without a copy of it. One object serves all rows: `begin` forgets the
 * changes of the last one.
 */
export class RowEdits {
  /** What has been changed: the first `count`, in no order. */
  readonly ids: Int32Array;
  count = 0;
  private row: Float32Array = new Float32Array(0);
  /** By token id, where it has been changed in this round. */
  private readonly values: Float32Array;
  private readonly changedIn: Int32Array;
  private round = 0;

  constructor(vocabularySize: number) {
    this.ids = new Int32Array(vocabularySize);
    this.values = new Float32Array(vocabularySize);
    this.changedIn = new Int32Array(vocabularySize);
  }

  begin(row: Float32Array): void {
    this.row = row;
    this.count = 0;
    this.round = (this.round + 1) | 0;
  }

  get(id: number): number {
    return this.changedIn[id] === this.round ? this.values[id]! : this.row[id]!;
  }

  /** Rounded to float32; ids beyond the row are left out. */
  set(id: number, value: number): void {
    if (id >= this.row.length) return;
    if (this.changedIn[id] !== this.round) {
      this.changedIn[id] = this.round;
      this.ids[this.count++] = id;
    }
    this.values[id] = value;
  }

  /** Makes the changes in a copy of the row, or in the row itself. */
  applyTo(copy: Float32Array): void {
    for (let i = 0; i < this.count; i++) copy[this.ids[i]!] = this.values[this.ids[i]!]!;
  }
}
