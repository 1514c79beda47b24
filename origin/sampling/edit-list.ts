import { type DrawEdits, EDIT_AMOUNTS } from '../model/device-draws.ts';
import { IdSet } from './id-set.ts';
import type { LogitEdits } from './logit-edits.ts';

/** Places among the amounts of an edit. */
const [BIAS, PENALTY, MINUS, LOWERED] = [0, 1, 2, 3] as const;
const UNCHANGED = [0, 1, 0, 0];

/** Changes of logits that are not here: a device applies them. One object serves all rows. */
export class EditList implements LogitEdits {
  readonly #changed: IdSet;
  /** By token id, as are the amounts; valid if `#changed` has it. */
  readonly #forbidden: Uint8Array;
  readonly #amounts: Float64Array;

  constructor(vocabularySize: number) {
    this.#changed = new IdSet(vocabularySize);
    this.#forbidden = new Uint8Array(vocabularySize);
    this.#amounts = new Float64Array(EDIT_AMOUNTS * vocabularySize);
  }

  /** @param mask bit set of the tokens that may come, of which the others are not changed; null = all */
  begin(mask: Uint32Array | null): void {
    this.#changed.clear(mask);
  }

  forbid(id: number): void {
    if (this.#change(id)) this.#forbidden[id] = 1;
  }

  add(id: number, amount: number): void {
    this.#write(id, BIAS, amount);
  }

  repeat(id: number, penalty: number): void {
    this.#write(id, PENALTY, penalty);
  }

  subtract(id: number, amount: number): void {
    this.#write(id, MINUS, amount);
  }

  lower(id: number, amount: number): void {
    this.#write(id, LOWERED, amount);
  }

  /** Returns a copy of the changes; null if there are none. */
  take(): DrawEdits | null {
    const ids = this.#changed.ids.slice(0, this.#changed.count);
    if (ids.length === 0) return null;
    const amounts = new Float64Array(EDIT_AMOUNTS * ids.length);
    for (const [at, id] of ids.entries()) amounts.set(this.#amountsOf(id), EDIT_AMOUNTS * at);
    return { ids, forbidden: Uint8Array.from(ids, (id) => this.#forbidden[id]!), amounts };
  }

  #write(id: number, place: number, amount: number): void {
    if (this.#change(id)) this.#amounts[EDIT_AMOUNTS * id + place] = amount;
  }

  /** Returns false if the token is beyond the row, or may not come. */
  #change(id: number): boolean {
    if (!this.#changed.add(id)) return this.#changed.has(id);
    this.#forbidden[id] = 0;
    this.#amountsOf(id).set(UNCHANGED);
    return true;
  }

  #amountsOf(id: number): Float64Array {
    return this.#amounts.subarray(EDIT_AMOUNTS * id, EDIT_AMOUNTS * (id + 1));
  }
}
