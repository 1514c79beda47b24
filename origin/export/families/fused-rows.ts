import type { AttentionDesign, RowRange } from './decoder-design.ts';

/** Rows of queries, keys and values in a matrix that has all three. */
export type FusedRows = Readonly<Record<'query' | 'key' | 'value', readonly RowRange[]>>;

/**
 * blocks: all queries, then all keys, then all values (GPT-2, Phi 3). by-kv-head: for each KV head its queries, its key and
 * its value (GPT-NeoX and BLOOM with one query each, Falcon, InternLM 2).
 */
export function fusedRows(
  order: 'blocks' | 'by-kv-head',
  { heads, kvHeads, headSize }: Pick<AttentionDesign, 'heads' | 'kvHeads' | 'headSize'>,
): FusedRows {
  const groups = order === 'blocks' ? 1 : kvHeads;
  const queries = (heads / groups) * headSize;
  const keys = (kvHeads / groups) * headSize;
  const rows = (offset: number, count: number): RowRange[] =>
    Array.from({ length: groups }, (_, group) => ({ first: group * (queries + 2 * keys) + offset, count }));
  return { query: rows(0, queries), key: rows(queries, keys), value: rows(queries + keys, keys) };
}
