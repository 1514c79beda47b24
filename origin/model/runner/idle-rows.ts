import type { DecodeBatch, KvBytes } from '../model-runner.ts';

type SlotRange = Pick<DecodeBatch, 'firstSlot' | 'rows'>;

/**
 * Widens decode batches by rows of other slots. Their result is ignored, but they write: each to the position
 * after the last write to its slot, because nothing after that is needed. They stay there; otherwise they
 * would grow, and attention with them.
 */
export class IdleRows {
  readonly #tokens: Int32Array;
  readonly #positions: Int32Array;
  /** Per slot: the end of the last write. */
  readonly #ends: Int32Array;
  readonly #lastPosition: number;

  constructor({ slots, contextLength }: { readonly slots: number; readonly contextLength: number }) {
    this.#tokens = new Int32Array(slots);
    this.#positions = new Int32Array(slots);
    this.#ends = new Int32Array(slots);
    this.#lastPosition = contextLength - 1;
  }

  written(slot: number, start: number, length: number): void {
    this.#ends[slot] = start + length;
  }

  /** Records what a batch writes. */
  decoded({ firstSlot, rows, positions, idle }: DecodeBatch): void {
    for (let row = 0; row < rows; row++) if (!idle?.[row]) this.written(firstSlot + row, positions[row]!, 1);
  }

  /**
   * Returns a batch of these slots, which include those of `batch`; valid until the next call. What the batch
   * says of idle rows does not count: a prompt may have begun in their slots. All later slots have idle rows
   * too, because a run with more rows may be made with it.
   */
  widened({ firstSlot, rows, tokens, positions, idle }: DecodeBatch, wide: SlotRange): DecodeBatch {
    for (let row = 0; wide.firstSlot + row < this.#ends.length; row++) {
      const slot = wide.firstSlot + row;
      const at = slot - firstSlot;
      const isIdle = at < 0 || at >= rows || Boolean(idle?.[at]);
      this.#tokens[row] = isIdle ? 0 : tokens[at]!;
      this.#positions[row] = isIdle ? Math.min(this.#ends[slot]!, this.#lastPosition) : positions[at]!;
    }
    return { ...wide, tokens: this.#tokens, positions: this.#positions };
  }

  /** Returns the KV of slots; writes to it are recorded, and reported. */
  observed(kv: KvBytes, onWrite: (slot: number, start: number) => void = () => {}): KvBytes {
    return {
      positionBytes: kv.positionBytes,
      read: (slot, start, end, bytes) => kv.read(slot, start, end, bytes),
      write: (slot, start, parts) => {
        kv.write(slot, start, parts);
        const bytes = parts.reduce((sum, { length }) => sum + length, 0);
        this.written(slot, start, bytes / Math.max(1, kv.positionBytes));
        onWrite(slot, start);
      },
      discard: (slot, start) => kv.discard(slot, start),
    };
  }
}
