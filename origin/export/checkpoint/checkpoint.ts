/** The source of a model's weights and configuration, whatever the file format. */

/**
 * A tensor of a checkpoint. It is read as a matrix: its last dimension is the columns, all others together
 * are the rows. A vector [n] is one row of n columns.
 */
export interface CheckpointTensor {
  /** Hugging Face's name, such as `model.layers.0.self_attn.q_proj.weight`. */
  readonly name: string;
  readonly shape: readonly number[];
  /** The file's name of the element type, such as `BF16` or `Q6_K`; for messages. */
  readonly storedAs: string;
  /** Bytes that are read for the whole tensor. */
  readonly storedBytes: number;
  /** Set if the stored blocks can be used without loss; then `readBlocks` returns rows in this format. */
  readonly blocks: BlockFormat | null;
}

/**
 * Integers in blocks along the columns of a row: value = (level − 2^(bits − 1)) · scale. These are the
 * formats of MatMulNBits and GatherBlockQuantized without zero points.
 */
export interface BlockFormat {
  readonly bits: 4 | 8;
  /** A power of two, at least 16. The last block of a row may be incomplete; it is stored whole. */
  readonly blockSize: number;
  /** Whether the blocks of a row have equal scales; absent = false. */
  readonly isRow?: boolean;
}

/** Rows in a block format. `blocks` = ceil(columns / blockSize). */
export interface BlockRows {
  /** Levels [rows, blocks, blockSize · bits / 8]; 4 bits: even elements in the low nibble. */
  readonly levels: Uint8Array;
  /** [rows, blocks] */
  readonly scales: Float32Array;
}

export interface Checkpoint {
  /** Directory, file or name that the weights come from; for messages. */
  readonly source: string;
  /** config.json as parsed JSON, with the names that transformers uses. */
  readonly config: Readonly<Record<string, unknown>>;
  readonly tensors: ReadonlyMap<string, CheckpointTensor>;
  /** Files for the model directory beside config.json: tokenizer.json, generation_config.json and so on. */
  readonly files: readonly CheckpointFile[];
  /**
   * Reads rows [first, first + count) as float32 [count, columns].
   * @throws ModelError that names the tensor
   */
  readRows(name: string, first: number, count: number): Promise<Float32Array>;
  /** Like `readRows`, for tensors whose `blocks` is set. */
  readBlocks(name: string, first: number, count: number): Promise<BlockRows>;
  close(): Promise<void>;
}

/** A file to place in the model directory: a copy of another file, or this text. */
export type CheckpointFile =
  | { readonly name: string; readonly copyOf: string }
  | { readonly name: string; readonly text: string };

/** Columns of a tensor as a matrix; a scalar has one. */
export const columnsOf = ({ shape }: Pick<CheckpointTensor, 'shape'>): number => shape.at(-1) ?? 1;

/** Rows of a tensor as a matrix. */
export const rowsOf = ({ shape }: Pick<CheckpointTensor, 'shape'>): number =>
  shape.slice(0, -1).reduce((product, size) => product * size, 1);
