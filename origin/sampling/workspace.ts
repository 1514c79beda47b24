import type { BlockKernel } from './block-kernel.ts';
import type { Breakers } from './logits/dry-breakers.ts';
import { RowEdits } from './logits/row-edits.ts';
import { RowBlocks } from './row-blocks.ts';
import { BoundarySearch } from './truncation/boundary-search.ts';
import { Candidates } from './truncation/candidates.ts';
import { RowSample } from './truncation/row-sample.ts';

/**
 * Buffers that all samplers of one engine share, so that no token allocates: each call of a sampler fills and leaves
 * them. About 40 bytes per token of the vocabulary.
 */
export class SamplerWorkspace {
  readonly vocabularySize: number;
  /** What processors change of a logits row, */
  readonly edits: RowEdits;
  /** and the copy of the row in which it is changed. */
  readonly scores: Float32Array;
  readonly candidates: Candidates;
  /** Sort keys, heap or list of numbers of whichever step is running. */
  readonly keys: Float64Array;
  /** Permutation or list of ids of whichever step is running. */
  readonly order: Int32Array;
  readonly search: BoundarySearch;
  readonly blocks: RowBlocks;
  readonly sample = new RowSample();
  /** By token id; all zeros between calls. */
  readonly longestRepeat: Int32Array;
  /** What is known of a request's sequence breakers and the tokens of its bad words, which all its sequences share. */
  readonly breakers = new WeakMap<readonly string[], Breakers>();
  readonly badWords = new WeakMap<readonly string[], readonly (readonly number[])[]>();
  private lengthBuffer = new Int32Array(0);

  /** @param kernel what reduces rows faster than JavaScript; worth it for large vocabularies */
  constructor(vocabularySize: number, kernel: BlockKernel | null = null) {
    this.vocabularySize = vocabularySize;
    this.scores = kernel?.allocate(vocabularySize) ?? new Float32Array(vocabularySize);
    this.edits = new RowEdits(vocabularySize);
    this.candidates = new Candidates(vocabularySize);
    this.keys = new Float64Array(vocabularySize);
    this.order = new Int32Array(vocabularySize);
    this.search = new BoundarySearch(this.candidates, this.keys, this.order);
    this.blocks = new RowBlocks(vocabularySize, kernel);
    this.longestRepeat = new Int32Array(vocabularySize);
  }

  /** At least `count` numbers, one per position of a history; grows by doubling to the longest one seen. */
  lengths(count: number): Int32Array {
    if (this.lengthBuffer.length < count) this.lengthBuffer = new Int32Array(2 * count);
    return this.lengthBuffer;
  }
}
