import { type DrawEdits, EDIT_AMOUNTS } from '../model/device-draws.ts';
import { IdSet } from './id-set.ts';
import type { LogitEdits } from './logit-edits.ts';

/** Kinds of amounts of an edit. */
const [BIAS, PENALTY, MINUS, LOWERED] = [0, 1, 2, 3] as const;
const UNCHANGED = [0, 1, 0, 0];

/** Changes of logits that are not here: a device applies them. One object serves all rows. */
export class EditList implements LogitEdits {
  readonly #changed: IdSet;
  /** By place among the changed tokens, as are the amounts. */
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
    const place = this.#change(id);
    if (place >= 0) this.#forbidden[place] = 1;
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
    const { ids, count } = this.#changed;
    if (count === 0) return null;
    return {
      ids: ids.slice(0, count),
      forbidden: this.#forbidden.slice(0, count),
      amounts: this.#amounts.slice(0, EDIT_AMOUNTS * count),
    };
  }

  #write(id: number, kind: number, amount: number): void {
    const place = this.#change(id);
    if (place >= 0) this.#amounts[EDIT_AMOUNTS * place + kind] = amount;
  }

  /** Returns the token's place; −1 if it is beyond the row, or may not come. */
  #change(id: number): number {
    if (!this.#changed.add(id)) return this.#changed.placeOf(id);
    const place = this.#changed.count - 1;
    this.#forbidden[place] = 0;
    this.#amounts.set(UNCHANGED, EDIT_AMOUNTS * place);
    return place;
  }
}
