/** Parts of a decoder as data: tensors, products and norms. */

/** Rows `first`, `first + step`, … of a tensor: `count` of them. */
export interface RowRange {
  readonly first: number;
  readonly count: number;
  /** 1 if absent. */
  readonly step?: number;
}

/** Rows of one tensor of the checkpoint. */
export interface WeightPart {
  readonly tensor: string;
  /** The rows to take, in this order; absent = all. Of the transposed matrix if `transposed`. */
  readonly rows?: readonly RowRange[];
  /** True if the matrix is stored as [inputs, outputs] (GPT-2's Conv1D). With 3 dimensions, each is. */
  readonly transposed?: boolean;
  /** The matrix of a tensor [count, rows, columns], such as one expert of a stack. */
  readonly matrix?: number;
}

/** Parts below one another: a matrix [outputs, inputs], or a vector (without `rows`, of any shape). */
export type Weight = readonly WeightPart[];

/** All rows of one tensor. */
export const whole = (tensor: string): Weight => [{ tensor }];

/** y = factor · (x · weightᵀ + bias + added.up(added.down(x))) */
export interface ProjectionDesign {
  readonly weight: Weight;
  readonly bias: Weight | null;
  /** A product through `rank` values (Zamba 2); absent = none. */
  readonly added?: { readonly rank: number; readonly down: ProjectionDesign; readonly up: ProjectionDesign };
  /** Absent = 1. */
  readonly factor?: number;
}

export interface NormDesign {
  /** rms: x / √(mean x² + ε); layer: (x − mean) / √(variance + ε). */
  readonly kind: 'rms' | 'layer';
  readonly epsilon: number;
  /** Null = 1. */
  readonly weight: Weight | null;
  /** Null = 0. */
  readonly bias: Weight | null;
  /** Added to the stored weight: 1 for Gemma and Nemotron, else 0. */
  readonly weightOffset: 0 | 1;
  /** Of weight and bias; absent = 1. */
  readonly factor?: number;
}
