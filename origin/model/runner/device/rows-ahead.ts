import type { DecodeBatch, SlotToken } from '../../model-runner.ts';

/** The rows of the run that the device has begun before the host asks for it: slots, tokens, positions. */
export class RowsAhead {
  /** Of the graph, from slot 0 on; 0 = no run has begun. */
  #rows = 0;
  /** By slot; −1 = its row is of no sequence. */
  readonly #tokens: Int32Array;
  readonly #positions: Int32Array;

  constructor(slots: number) {
    this.#tokens = new Int32Array(slots);
    this.#positions = new Int32Array(slots);
  }

  get rows(): number {
    return this.#rows;
  }

  /**
   * Notes a run after the tokens that were drawn in a batch.
   * @param joining rows that were idle in the batch
   */
  set(
    { rows, positions }: Pick<DecodeBatch, 'rows' | 'positions'>,
    drawn: Iterable<readonly [row: number, id: number]>,
    joining: readonly SlotToken[],
  ): void {
    this.#rows = rows;
    this.#tokens.fill(-1);
    for (const [row, id] of drawn) this.#add({ slot: row, token: id, position: positions[row]! + 1 });
    for (const row of joining) this.#add(row);
  }

  #add({ slot, token, position }: SlotToken): void {
    this.#tokens[slot] = token;
    this.#positions[slot] = position;
  }

  clear(): void {
    this.#rows = 0;
  }

  /** Notes that the KV of a slot has changed. */
  forget(slot: number): void {
    this.#tokens[slot] = -1;
  }

  /** Whether the device computes a row. */
  has({ slot, token, position }: SlotToken): boolean {
    return slot < this.#rows && this.#tokens[slot] === token && this.#positions[slot] === position;
  }
}
