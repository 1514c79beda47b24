import { firstDifference, type Span } from './span.ts';

/**
 * Which sequence sits in which row of the KV cache, and which prompt prefix each row still holds.
 *
 * Only whole prefill chunks of a prompt are kept for reuse: their bits do not depend on who computed them. A row that is free keeps its prefix until the row is needed; the least recently used prefix goes
 * first. Rows in use stay close together, so that one contiguous decode covers them.
 */

/** Move the KV of positions [0, length) before anything else is written. */
export interface KvCopy {
  readonly from: number;
  readonly to: number;
  readonly length: number;
}

export interface Seat {
  readonly slot: number;
  /** Positions whose KV is already there once `copies` are done; a multiple of the chunk. */
  readonly cached: number;
  /** In this order. */
  readonly copies: readonly KvCopy[];
}

interface Row {
  held: boolean;
  /** The prompt whose first `kept` positions are in the row. */
  tokens: Int32Array;
  /** What stands among them, in order. */
  images: readonly Span[];
  namespace: string;
  kept: number;
  /** Tick of the last use; 0 = never. */
  used: number;
}

const NO_TOKENS = new Int32Array(0);

export interface KvSlotsShape {
  readonly slots: number;
  readonly contextLength: number;
  readonly prefillChunk: number;
}

export class KvSlots {
  readonly #rows: readonly Row[];
  readonly #chunk: number;
  /** One position stays free in every row, where a decode may write for a row that has nothing to decode. */
  readonly #mostKept: number;
  #held = 0;
  #tick = 0;

  constructor(shape: KvSlotsShape) {
    this.#chunk = shape.prefillChunk;
    this.#mostKept = this.#wholeChunks(shape.contextLength - 1);
    this.#rows = Array.from({ length: shape.slots }, () => emptyRow());
  }

  get slots(): number {
    return this.#rows.length;
  }

  get held(): number {
    return this.#held;
  }

  isHeld(slot: number): boolean {
    return this.#row(slot).held;
  }

  /** Positions at the start of a row that must not be overwritten. */
  kept(slot: number): number {
    return this.#row(slot).kept;
  }

  /**
   * A row for a prompt, with the longest prefix any row of the namespace holds. The last prompt token is never taken
   * from a cache, because its logits are needed.
   * @param reuse false = take nothing
   * @param images what stands in the prompt, in order; a prefix is common up to the first that differs
   */
  seat(prompt: Int32Array, namespace: string, reuse: boolean, images: readonly Span[] = []): Seat {
    const donor = reuse ? this.#longestPrefix(prompt, namespace, images) : null;
    const slot = this.#chooseSlot(donor?.slot ?? null);
    const copies: KvCopy[] = [];
    const cached = donor?.length ?? 0;
    if (donor?.slot !== slot || this.kept(slot) > cached) this.#saveKept(slot, donor?.slot ?? null, copies);
    if (donor !== null && donor.slot !== slot) {
      copies.push({ from: donor.slot, to: slot, length: cached });
      this.#dropCovered(donor.slot, cached);
    }
    this.#hold(slot, { tokens: prompt, images, namespace }, cached);
    return { slot, cached, copies };
  }

  /** A row for another sequence of the same prompt, which the row `from` has computed up to `length`. */
  fork(from: number, length: number): Seat {
    const source = this.#row(from);
    const slot = this.#chooseSlot(null);
    const copies: KvCopy[] = [];
    this.#saveKept(slot, null, copies);
    copies.push({ from, to: slot, length });
    this.#hold(slot, source, source.kept);
    return { slot, cached: source.kept, copies };
  }

  /** Moves a held row into a free one; `length` positions are in use. The free row's own prefix is saved if it can be. */
  move(from: number, to: number, length: number): readonly KvCopy[] {
    const source = this.#row(from);
    const copies: KvCopy[] = [];
    this.#saveKept(to, null, copies);
    copies.push({ from, to, length });
    this.#hold(to, source, source.kept);
    this.release(from, false);
    return copies;
  }

  /** Notes that the KV of the row's tokens up to `computed` is in it. */
  record(slot: number, computed: number): void {
    const row = this.#row(slot);
    const whole = this.#wholeChunks(Math.min(computed, row.tokens.length));
    row.kept = Math.max(row.kept, Math.min(whole, this.#mostKept));
  }

  /** Frees the row; what it has kept stays until the row is needed, unless nobody may reuse it. */
  release(slot: number, reusable: boolean): void {
    const row = this.#row(slot);
    if (!row.held) throw new Error(`KV slot ${slot} is not in use`);
    row.held = false;
    row.used = ++this.#tick;
    this.#held--;
    if (!reusable) this.forget(slot);
  }

  /** Drops what the row has kept. */
  forget(slot: number): void {
    const row = this.#row(slot);
    row.tokens = NO_TOKENS;
    row.images = [];
    row.namespace = '';
    row.kept = 0;
    row.used = 0;
  }

  #longestPrefix(
    prompt: Int32Array,
    namespace: string,
    images: readonly Span[],
  ): { slot: number; length: number } | null {
    let slot = -1;
    let length = 0;
    for (let at = 0; at < this.#rows.length; at++) {
      const row = this.#rows[at]!;
      if (row.namespace !== namespace || row.kept <= length) continue;
      const limit = Math.min(row.kept, prompt.length - 1, firstDifference(row.images, images));
      const common = this.#wholeChunks(commonPrefix(row.tokens, prompt, limit));
      if (common > length) {
        slot = at;
        length = common;
      }
    }
    return length > 0 ? { slot, length } : null;
  }

  /** The donor's own row when it is free and not out of the way; else the free row that keeps the range shortest. */
  #chooseSlot(donor: number | null): number {
    const { first, last } = this.#heldRange();
    const growth = (slot: number): number =>
      last < 0 ? 0 : Math.max(0, first - slot) + Math.max(0, slot - last);
    if (donor !== null && !this.isHeld(donor) && growth(donor) <= 1) return donor;
    let best = -1;
    for (let slot = 0; slot < this.#rows.length; slot++) {
      const row = this.#rows[slot]!;
      if (row.held) continue;
      if (
        best < 0 ||
        growth(slot) < growth(best) ||
        (growth(slot) === growth(best) && row.used < this.#row(best).used)
      ) {
        best = slot;
      }
    }
    if (best < 0) throw new Error('no free KV slot');
    return best;
  }

  /** Where a prefix worth more than another free row's would be overwritten, it takes that row's place. */
  #saveKept(slot: number, donor: number | null, copies: KvCopy[]): void {
    const row = this.#row(slot);
    if (row.kept === 0) return;
    let victim = -1;
    let oldest = row.used;
    for (let at = 0; at < this.#rows.length; at++) {
      const other = this.#rows[at]!;
      if (other.held || at === slot || at === donor || other.used >= oldest) continue;
      victim = at;
      oldest = other.used;
    }
    if (victim < 0) return;
    copies.push({ from: slot, to: victim, length: row.kept });
    Object.assign(this.#row(victim), { ...row, held: false });
  }

  /** A free donor that holds nothing beyond what was copied from it is worth nothing any more. */
  #dropCovered(donor: number, copied: number): void {
    const row = this.#row(donor);
    if (!row.held && row.kept <= copied) this.forget(donor);
    else row.used = row.held ? row.used : ++this.#tick;
  }

  #hold(
    slot: number,
    { tokens, images, namespace }: Pick<Row, 'tokens' | 'images' | 'namespace'>,
    kept: number,
  ): void {
    const row = this.#row(slot);
    if (row.held) throw new Error(`KV slot ${slot} is in use`);
    Object.assign(row, { held: true, tokens, images, namespace, kept, used: ++this.#tick });
    this.#held++;
  }

  #heldRange(): { first: number; last: number } {
    const first = this.#rows.findIndex((row) => row.held);
    const last = this.#rows.findLastIndex((row) => row.held);
    return { first, last };
  }

  #wholeChunks(length: number): number {
    return length - (length % this.#chunk);
  }

  #row(slot: number): Row {
    const row = this.#rows[slot];
    if (row === undefined) throw new RangeError(`no KV slot ${slot}`);
    return row;
  }
}

function emptyRow(): Row {
  return { held: false, tokens: NO_TOKENS, images: [], namespace: '', kept: 0, used: 0 };
}

function commonPrefix(a: Int32Array, b: Int32Array, limit: number): number {
  let at = 0;
  while (at < limit && a[at] === b[at]) at++;
  return at;
}
