import { Candidates } from './candidates.ts';
import type { Breaker, Breakers } from './dry-breakers.ts';
import { EditList } from './edit-list.ts';
import type { SimdKernel } from './kernel/simd-kernel.ts';
import { isLargeVocabulary, Row } from './row.ts';
import { RowEdits } from './row-edits.ts';

/**
 * Buffers that all samplers of one thread share, so that no token allocates: each call of a sampler fills and
 * leaves them. About 40 bytes per token of the vocabulary.
 */
export class SamplerWorkspace {
  readonly vocabularySize: number;
  /** The row being sampled: the model's logits, or `edited`. */
  readonly row: Row;
  /** What logits processors change in a row. */
  readonly edits: RowEdits;
  /** The copy of a row to which masks and edits are applied. */
  readonly edited: Float32Array;
  readonly candidates: Candidates;
  /** Scratch of the step that is running: sort keys, or a list of numbers. */
  readonly keys: Float64Array;
  /** Scratch of the step that is running: a list of ids. */
  readonly ids: Int32Array;
  /** By token id; all zeros between calls. */
  readonly longestRepeat: Int32Array;
  /** What is known of a request's sequence breakers, which all its sequences share. */
  readonly breakers = new WeakMap<readonly Breaker[], Breakers>();
  #lengthBuffer = new Int32Array(0);
  #editList: EditList | null = null;

  /**
   * @param kernel reads rows in place that come from its memory, and copies others
   * @param sumsInFloat32 whether sums over a row are made in float32; by default for large vocabularies only
   */
  constructor(vocabularySize: number, kernel: SimdKernel, sumsInFloat32 = isLargeVocabulary(vocabularySize)) {
    this.vocabularySize = vocabularySize;
    this.row = new Row(vocabularySize, kernel, sumsInFloat32);
    this.edits = new RowEdits(vocabularySize);
    // The kernel copies small rows faster than WebAssembly memory is worth: each reserves gigabytes of
    // address space.
    this.edited = isLargeVocabulary(vocabularySize)
      ? kernel.allocate(vocabularySize)
      : new Float32Array(vocabularySize);
    this.candidates = new Candidates(vocabularySize);
    this.keys = new Float64Array(vocabularySize);
    this.ids = new Int32Array(vocabularySize);
    this.longestRepeat = new Int32Array(vocabularySize);
  }

  /** What logits processors change in a row that is on a device. */
  get editList(): EditList {
    this.#editList ??= new EditList(this.vocabularySize);
    return this.#editList;
  }

  /** At least `count` numbers, one per position of a history; grows by doubling to the longest one seen. */
  lengths(count: number): Int32Array {
    if (this.#lengthBuffer.length < count) this.#lengthBuffer = new Int32Array(2 * count);
    return this.#lengthBuffer;
  }
}
