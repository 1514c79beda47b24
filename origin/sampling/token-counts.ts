/**
 * How often each distinct token occurs in a window of one history: an open-addressing table whose entries are listed
 * in order of first appearance. Tokens that have left the window keep their entry with counts of zero.
 */
export class TokenCounts {
  /** Entries in use. */
  distinct = 0;
  /** Token id of each entry. */
  readonly ids: Int32Array;
  /** Occurrences of each entry in the window, in prompt and generated text together. */
  readonly total: Int32Array;
  /** Occurrences of each entry in the window among generated tokens. */
  readonly generated: Int32Array;
  /** Hash slots: entry + 1, or 0 where empty; a power of two of them, at most half full. */
  private readonly slots: Int32Array;

  constructor(capacity: number) {
    this.ids = new Int32Array(capacity);
    this.total = new Int32Array(capacity);
    this.generated = new Int32Array(capacity);
    this.slots = new Int32Array(2 ** Math.ceil(Math.log2(2 * capacity + 2)));
  }

  /** Adds `change` (1 or −1) occurrences of a token. */
  add(id: number, change: number, isGenerated: boolean): void {
    const entry = this.entryOf(id);
    this.total[entry]! += change;
    if (isGenerated) this.generated[entry]! += change;
  }

  private entryOf(id: number): number {
    const wrap = this.slots.length - 1;
    let slot = (Math.imul(id, 0x9e3779b1) >>> 7) & wrap;
    for (let found = this.slots[slot]!; found !== 0; found = this.slots[slot]!) {
      if (this.ids[found - 1] === id) return found - 1;
      slot = (slot + 1) & wrap;
    }
    this.ids[this.distinct] = id;
    this.slots[slot] = ++this.distinct;
    return this.distinct - 1;
  }
}
