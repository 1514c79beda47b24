import { BLOCK_SIZE, type SparseRow } from '../model/sparse-logits.ts';
import type { LogitEdits } from './logit-edits.ts';
import { isIn } from './masked-copy.ts';

/** Edits keep logits within ±this: an infinity would make probabilities NaN, or forbid the token. */
const MAX_FLOAT32 = 3.4028234663852886e38;

/** A row of logits with single numbers changed, without a copy of it. One object serves all rows. */
export class RowEdits implements LogitEdits {
  /** Ids of the changed logits: the first `count`, in no order. */
  readonly ids: Int32Array;
  count = 0;
  /** False if a changed logit is not here yet: the changes are to be made again when it is. */
  isComplete = true;
  #row: Float32Array = new Float32Array(0);
  #sparse: SparseRow | null = null;
  /** Bit set of the tokens that may come; null = all. */
  mask: Uint32Array | null = null;
  /** By token id; valid if `changedIn` holds the current round. */
  readonly #values: Float32Array;
  readonly #changedIn: Int32Array;
  #round = 0;

  constructor(vocabularySize: number) {
    this.ids = new Int32Array(vocabularySize);
    this.#values = new Float32Array(vocabularySize);
    this.#changedIn = new Int32Array(vocabularySize);
  }

  /** Sets the row and its mask, and forgets the changes of the last one. */
  begin(row: Float32Array, sparse: SparseRow | null = null, mask: Uint32Array | null = null): void {
    this.#row = row;
    this.#sparse = sparse;
    this.mask = mask;
    this.isComplete = true;
    this.count = 0;
    this.#round = (this.#round + 1) | 0;
  }

  get(id: number): number {
    return this.#changedIn[id] === this.#round ? this.#values[id]! : this.#row[id]!;
  }

  forbid(id: number): void {
    this.set(id, Number.NEGATIVE_INFINITY);
  }

  add(id: number, amount: number): void {
    this.set(id, this.get(id) + amount);
  }

  repeat(id: number, penalty: number): void {
    const logit = this.get(id);
    // A penalty near 0 rewards without limit, but a logit must stay finite.
    this.set(id, logit > 0 ? Math.min(logit / penalty, MAX_FLOAT32) : logit * penalty);
  }

  subtract(id: number, amount: number): void {
    this.set(id, this.get(id) - amount);
  }

  lower(id: number, amount: number): void {
    const logit = this.get(id);
    if (logit >= -MAX_FLOAT32) this.set(id, Math.max(logit - amount, -MAX_FLOAT32));
  }

  /** Rounds to float32; ignores ids beyond the row, and those that may not come. */
  set(id: number, value: number): void {
    if (id >= this.#row.length || (this.mask !== null && !isIn(this.mask, id))) return;
    if (this.#changedIn[id] !== this.#round) {
      if (this.#sparse?.ask(Math.floor(id / BLOCK_SIZE)) === false) this.isComplete = false;
      this.#changedIn[id] = this.#round;
      this.ids[this.count++] = id;
    }
    this.#values[id] = value;
  }

  /** Writes the changes to the row, or to a copy of it. */
  applyTo(row: Float32Array): void {
    for (let i = 0; i < this.count; i++) row[this.ids[i]!] = this.#values[this.ids[i]!]!;
  }
}
