import type { RowEdits } from '../logits/row-edits.ts';

/** Changes that all rows of a step may have together. */
const MOST_EDITS = 65_536;

/** What changes of the rows of one step, in memory that threads share. */
export class SharedEdits {
  readonly memory: SharedArrayBuffer;
  readonly #ids: Int32Array;
  readonly #values: Float32Array;
  #end = 0;

  /** @param memory another thread's; one of its own unless given */
  constructor(memory?: SharedArrayBuffer) {
    this.memory = memory ?? new SharedArrayBuffer(8 * MOST_EDITS);
    this.#ids = new Int32Array(this.memory, 0, MOST_EDITS);
    this.#values = new Float32Array(this.memory, 4 * MOST_EDITS);
  }

  /** Forgets those of the last step. */
  begin(): void {
    this.#end = 0;
  }

  /** Where one row's changes begin; −1 where there is no room for them. */
  add(edits: RowEdits): number {
    const start = this.#end;
    if (start + edits.count > MOST_EDITS) return -1;
    for (let i = 0; i < edits.count; i++) {
      const id = edits.ids[i]!;
      this.#ids[start + i] = id;
      this.#values[start + i] = edits.get(id);
    }
    this.#end += edits.count;
    return start;
  }

  applyTo(copy: Float32Array, start: number, count: number): void {
    for (let i = start; i < start + count; i++) copy[this.#ids[i]!] = this.#values[i]!;
  }
}
