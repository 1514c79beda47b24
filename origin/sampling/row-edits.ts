import { BLOCK_SIZE, type SparseRow } from '../model/sparse-logits.ts';
import { IdSet } from './id-set.ts';
import type { LogitEdits } from './logit-edits.ts';

/** Edits keep logits within ±this: an infinity would make probabilities NaN, or forbid the token. */
const MAX_FLOAT32 = 3.4028234663852886e38;

/** A row of logits with single numbers changed, without a copy of it. One object serves all rows. */
export class RowEdits implements LogitEdits {
  /** The tokens whose logits are changed. Its mask has those that may come. */
  readonly changed: IdSet;
  /** False if a changed logit is not here yet: the changes are to be made again when it is. */
  isComplete = true;
  #row: Float32Array = new Float32Array(0);
  #sparse: SparseRow | null = null;
  /** By token id; valid if `changed` has it. */
  readonly #values: Float32Array;

  constructor(vocabularySize: number) {
    this.changed = new IdSet(vocabularySize);
    this.#values = new Float32Array(vocabularySize);
  }

  /** Sets the row and its mask, and forgets the changes of the last one. */
  begin(row: Float32Array, sparse: SparseRow | null = null, mask: Uint32Array | null = null): void {
    this.#row = row;
    this.#sparse = sparse;
    this.isComplete = true;
    this.changed.clear(mask);
  }

  get(id: number): number {
    return this.changed.has(id) ? this.#values[id]! : this.#row[id]!;
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
    if (this.changed.add(id)) {
      if (this.#sparse?.ask(Math.floor(id / BLOCK_SIZE)) === false) this.isComplete = false;
    } else if (!this.changed.has(id)) return;
    this.#values[id] = value;
  }

  /** Writes the changes to the row, or to a copy of it. */
  applyTo(row: Float32Array): void {
    const { ids, count } = this.changed;
    for (let i = 0; i < count; i++) row[ids[i]!] = this.#values[ids[i]!]!;
  }
}
