/** Consecutive ids whose logits are summarized and brought to main memory together. */
export const BLOCK_SIZE = 128;

/** Words of a bit set of ids. */
const WORDS_PER_BLOCK = BLOCK_SIZE / 32;

/** Numbers of each block, in the order in which a device writes them. */
const STATISTICS = 4;

const [ABSENT, HERE, WANTED] = [0, 1, 2] as const;
/** In a wanting row, a sampler has asked for blocks. */
const [WHOLE, SPARSE, WANTING] = [0, 1, 2] as const;

/** Returns the blocks of a row; the last one may be shorter. */
export const blocksOf = (vocabularySize: number): number => Math.ceil(vocabularySize / BLOCK_SIZE);

/** The part of the memory that the statistics of one row take, in float32 elements. */
export const statisticsOf = (vocabularySize: number): number => STATISTICS * blocksOf(vocabularySize);

/**
 * Rows of logits, of which a device may bring only some blocks to main memory, with statistics of all blocks.
 * Samplers on any thread read them, and ask for more blocks. The memory holds [rows, vocabulary] logits,
 * [rows, 4, blocks] statistics, a list of [rows, blocks] int32, then coldness and state of each row.
 */
export class SparseLogits {
  readonly rows: number;
  readonly vocabularySize: number;
  readonly memory: Float32Array<ArrayBuffer>;
  /** Offset of the statistics, in elements. */
  readonly statisticsAt: number;
  /** Blocks that a device is to bring, as row · 65,536 + block. */
  readonly list: Int32Array;
  readonly #blocks: number;
  readonly #coldness: Float32Array;
  readonly #states: Int32Array;
  readonly #views = new Map<number, SparseRow>();

  /** Returns the length of the memory, in elements. */
  static length(rows: number, vocabularySize: number): number {
    return rows * (vocabularySize + (STATISTICS + 1) * blocksOf(vocabularySize) + 2);
  }

  constructor(memory: Float32Array<ArrayBuffer>, rows: number, vocabularySize: number) {
    this.memory = memory;
    this.rows = rows;
    this.vocabularySize = vocabularySize;
    this.#blocks = blocksOf(vocabularySize);
    this.statisticsAt = rows * vocabularySize;
    const listAt = this.statisticsAt + rows * STATISTICS * this.#blocks;
    this.list = this.#integers(listAt, rows * this.#blocks);
    this.#coldness = memory.subarray(listAt + this.list.length, listAt + this.list.length + rows);
    this.#states = this.#integers(listAt + this.list.length + rows, rows);
  }

  /** All rows are in main memory. */
  clear(): void {
    this.#states.fill(WHOLE);
  }

  /**
   * Begins a row of which the device brings the block of the largest logit, and statistics at this coldness.
   */
  begin(row: number, coldness: number): void {
    this.#coldness[row] = coldness;
    this.#states[row] = SPARSE;
  }

  /** Begins a row of which the device brings nothing until it is completed. */
  beginAbsent(row: number): void {
    this.#view(row).present.fill(ABSENT);
    this.#states[row] = SPARSE;
  }

  /** Returns the index of a row of the memory; −1 if it is none. */
  rowOf({ buffer, byteOffset }: Float32Array): number {
    if (buffer !== this.memory.buffer) return -1;
    const row = (byteOffset - this.memory.byteOffset) / (4 * this.vocabularySize);
    return Number.isInteger(row) && row >= 0 && row < this.rows ? row : -1;
  }

  /** Returns the index of a sparse row; −1 if all of the row is in main memory. */
  indexOf(logits: Float32Array): number {
    const row = this.rowOf(logits);
    return row >= 0 && this.#states[row] !== WHOLE ? row : -1;
  }

  /** Returns what is known of a sparse row; null if all of the row is in main memory. */
  of(logits: Float32Array): SparseRow | null {
    const row = this.indexOf(logits);
    if (row < 0) return null;
    const view = this.#view(row);
    view.coldness = this.#coldness[row]!;
    return view;
  }

  /** Writes the blocks that samplers have asked for to the list; they count as here. Returns their number. */
  listWanted(): number {
    let listed = 0;
    for (let row = 0; row < this.rows; row++) {
      if (this.#states[row] !== WANTING) continue;
      listed = this.#listWantedOf(row, listed);
      this.#states[row] = SPARSE;
    }
    return listed;
  }

  /** Lists all absent blocks of a row, which is then whole. Returns their number. */
  listRest(row: number): number {
    const { present } = this.#view(row);
    for (const [block, state] of present.entries()) if (state === ABSENT) present[block] = WANTED;
    this.#states[row] = WHOLE;
    return this.#listWantedOf(row, 0);
  }

  #listWantedOf(row: number, first: number): number {
    const { present } = this.#view(row);
    let listed = first;
    for (let block = 0; block < present.length; block++) {
      if (present[block] !== WANTED) continue;
      present[block] = HERE;
      this.list[listed++] = (row << 16) | block;
    }
    return listed;
  }

  #view(row: number): SparseRow {
    const cached = this.#views.get(row);
    if (cached !== undefined) return cached;
    const at = (part: number) => this.statisticsAt + (row * STATISTICS + part) * this.#blocks;
    const numbers = (part: number) => this.memory.subarray(at(part), at(part) + this.#blocks);
    const view = new SparseRow(
      { maxima: numbers(0), sums: numbers(1), coldSums: numbers(2) },
      this.#integers(at(3), this.#blocks),
      this.#states.subarray(row, row + 1),
    );
    this.#views.set(row, view);
    return view;
  }

  #integers(at: number, length: number): Int32Array {
    const { buffer, byteOffset } = this.memory;
    return new Int32Array(buffer, byteOffset + 4 * at, length);
  }
}

/** By block. Each sum is Σ e^((z − highest) · coldness), with the row's largest logit. */
interface BlockStatistics {
  /** The largest logit; +∞ if one is NaN. */
  readonly maxima: Float32Array;
  /** At coldness 1. */
  readonly sums: Float32Array;
  /** At the row's coldness. */
  readonly coldSums: Float32Array;
}

/** Thrown by what reads a row of which it has asked for blocks. It may be repeated when they are there. */
export class AbsentLogits extends Error {
  override readonly name = 'AbsentLogits';
}

/** Thrown for each row in most steps, and the stack is of no use. */
const ABSENT_LOGITS = new AbsentLogits('the device has not yet brought these logits');

/** What is known of a row of which not all blocks are in main memory. */
export class SparseRow {
  readonly statistics: BlockStatistics;
  readonly present: Int32Array;
  coldness = 1;
  readonly #state: Int32Array;

  constructor(statistics: BlockStatistics, present: Int32Array, state: Int32Array) {
    this.statistics = statistics;
    this.present = present;
    this.#state = state;
  }

  /** Requires the blocks with a logit of at least `cut`. @throws AbsentLogits after asking for absent ones */
  requireAbove(cut: number): void {
    const { maxima } = this.statistics;
    const { present } = this;
    let isAbsent = false;
    for (let block = 0; block < present.length; block++) {
      if (maxima[block]! >= cut && !this.ask(block)) isAbsent = true;
    }
    if (isAbsent) this.giveUp();
  }

  isHere(block: number): boolean {
    return this.present[block] === HERE;
  }

  /** Asks for a block, unless it is here. Returns whether it is. */
  ask(block: number): boolean {
    if (this.isHere(block)) return true;
    this.present[block] = WANTED;
    // A thread that was late may ask for a row that has become whole.
    if (this.#state[0] === SPARSE) this.#state[0] = WANTING;
    return false;
  }

  /** Asks for all blocks of these ids (bit id & 31 of word id >>> 5). Returns whether all are here. */
  askMasked(mask: Uint32Array): boolean {
    let areHere = true;
    for (let word = 0; word < mask.length; word++) {
      if (mask[word] !== 0 && !this.ask(Math.floor(word / WORDS_PER_BLOCK))) areHere = false;
    }
    return areHere;
  }

  /** @throws AbsentLogits after it has asked for the block */
  require(block: number): void {
    if (!this.ask(block)) this.giveUp();
  }

  /** For a reader that needs the whole row, or more blocks than are here. @throws AbsentLogits */
  giveUp(): never {
    throw ABSENT_LOGITS;
  }

  /** Returns what is known of a changed copy of the row, in which the same blocks are here. */
  with(statistics: BlockStatistics): SparseRow {
    const changed = new SparseRow(statistics, this.present, this.#state);
    changed.coldness = this.coldness;
    return changed;
  }

  /** Returns the sums at a coldness. @throws AbsentLogits if the device has not computed them */
  sumsAt(coldness: number): Float32Array {
    if (coldness === 1) return this.statistics.sums;
    if (Math.fround(coldness) === this.coldness) return this.statistics.coldSums;
    return this.giveUp();
  }
}
