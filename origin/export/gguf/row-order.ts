import { ModelError } from '@continuo/origin/model/config/model-json.ts';
import type { Moved, RowOrder } from './architecture.ts';

/** Orders of rows that llama.cpp's converter has changed, as the way back. */

/** Rows of one matrix: `count` of a source, from row `first` of its first matrix. */
interface Part {
  readonly source: number;
  readonly first: number;
  readonly count: number;
}

export const IN_PLACE: RowOrder = (row) => ({ source: 0, row });

/** Queries and keys whose rotated pairs are side by side: Hugging Face's halves of each head. */
export const halvesOfPairs =
  (headSize: number): RowOrder =>
  (row) => {
    const index = row % headSize;
    const pair = index % (headSize / 2);
    return { source: 0, row: row - index + 2 * pair + (index < headSize / 2 ? 0 : 1) };
  };

/**
 * Matrices with the rows of `parts` after each other. A part has its rows of all matrices together.
 * @throws ModelError if the parts are not all rows
 */
export const stacked =
  (parts: readonly Part[]): NonNullable<Moved['rows']> =>
  (counts) => {
    const height = parts.reduce((sum, { count }) => sum + count, 0);
    const matrices = counts.reduce((sum, count) => sum + count, 0) / height;
    const used = counts.map((_, index) =>
      parts.reduce((sum, { source, count }) => sum + (source === index ? count * matrices : 0), 0),
    );
    requireRows(counts, used);
    const starts = parts.map((_, index) => parts.slice(0, index).reduce((sum, { count }) => sum + count, 0));
    return (row) => {
      const place = row % height;
      const part = starts.findLastIndex((start) => start <= place);
      const { source, first, count } = parts[part]!;
      return { source, row: first + Math.floor(row / height) * count + place - starts[part]! };
    };
  };

/** Two stacks of matrices: those of each pair after each other. */
export const after = (height: number) =>
  stacked([
    { source: 0, first: 0, count: height },
    { source: 1, first: 0, count: height },
  ]);

/** Two stacks of matrices: the rows of each pair in turn. */
export const alternating = after(1);

/**
 * Heads of values behind `first` other rows. The file has the first heads of all heads of keys, then the
 * second ones; Hugging Face's has those of each head of keys together.
 * @throws ModelError if there are other rows
 */
export const byKeyHead =
  (heads: { readonly keyHeads: number; readonly heads: number }, size: number, first = 0) =>
  (counts: readonly number[]): RowOrder => {
    requireRows(counts, [first + heads.heads * size]);
    const shared = heads.heads / heads.keyHeads;
    return (row) => {
      if (row < first) return { source: 0, row };
      const head = Math.floor((row - first) / size);
      const stored = (head % shared) * heads.keyHeads + Math.floor(head / shared);
      return { source: 0, row: first + stored * size + ((row - first) % size) };
    };
  };

function requireRows(counts: readonly number[], needed: readonly number[]): void {
  if (String(counts) === String(needed)) return;
  throw new ModelError(
    `has ${counts.join(' and ')} rows or columns, but the keys need ${needed.join(' and ')}`,
  );
}
