import { type DrawEdits, EDIT_AMOUNTS } from '../model/device-draws.ts';
import type { LogitEdits } from './logit-edits.ts';
import { isIn } from './masked-copy.ts';

/** Places among the amounts of an edit. */
const [BIAS, PENALTY, MINUS, LOWERED] = [0, 1, 2, 3] as const;
const UNCHANGED = [0, 1, 0, 0];

/** Changes of logits that are not here: a device applies them. One object serves all rows. */
export class EditList implements LogitEdits {
  count = 0;
  readonly #vocabularySize: number;
  readonly #ids: Int32Array;
  readonly #forbidden: Uint8Array;
  readonly #amounts: Float64Array;
  /** By token id: its entry, valid if `#listedIn` holds the current round. */
  readonly #entries: Int32Array;
  readonly #listedIn: Int32Array;
  #round = 0;
  #mask: Uint32Array | null = null;

  constructor(vocabularySize: number) {
    this.#vocabularySize = vocabularySize;
    this.#ids = new Int32Array(vocabularySize);
    this.#forbidden = new Uint8Array(vocabularySize);
    this.#amounts = new Float64Array(EDIT_AMOUNTS * vocabularySize);
    this.#entries = new Int32Array(vocabularySize);
    this.#listedIn = new Int32Array(vocabularySize);
  }

  /** @param mask bit set of the tokens that may come, of which the others are not changed; null = all */
  begin(mask: Uint32Array | null): void {
    this.count = 0;
    this.#mask = mask;
    this.#round = (this.#round + 1) | 0;
  }

  forbid(id: number): void {
    const entry = this.#entryOf(id);
    if (entry >= 0) this.#forbidden[entry] = 1;
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
    const { count } = this;
    if (count === 0) return null;
    return {
      ids: this.#ids.slice(0, count),
      forbidden: this.#forbidden.slice(0, count),
      amounts: this.#amounts.slice(0, EDIT_AMOUNTS * count),
    };
  }

  #write(id: number, place: number, amount: number): void {
    const entry = this.#entryOf(id);
    if (entry >= 0) this.#amounts[EDIT_AMOUNTS * entry + place] = amount;
  }

  /** Returns the token's entry; −1 if it is beyond the row, or may not come. */
  #entryOf(id: number): number {
    if (id >= this.#vocabularySize || (this.#mask !== null && !isIn(this.#mask, id))) return -1;
    if (this.#listedIn[id] === this.#round) return this.#entries[id]!;
    const entry = this.count++;
    this.#listedIn[id] = this.#round;
    this.#entries[id] = entry;
    this.#ids[entry] = id;
    this.#forbidden[entry] = 0;
    this.#amounts.set(UNCHANGED, EDIT_AMOUNTS * entry);
    return entry;
  }
}
