import type { OutlineRow } from './outline.ts';

/** Sizes in pixels: a node, and the distance from one column or row to the next. */
export const GRAPH = { width: 208, height: 32, column: 256, row: 44 } as const;

export interface GraphNode {
  readonly row: OutlineRow;
  /** Upper left corner in pixels. */
  readonly left: number;
  readonly top: number;
  /** Tops of the first and the last shown child; null without any. */
  readonly children: readonly [first: number, last: number] | null;
}

/** Places each node in the column of its depth amid its children, and the leaves below each other. */
export function graphLayout(rows: readonly OutlineRow[]): readonly GraphNode[] {
  const isLeaf = (index: number) => (rows[index + 1]?.depth ?? 0) <= rows[index]!.depth;
  let below = rows.filter((_, index) => isLeaf(index)).length;
  const nodes: GraphNode[] = [];
  /** By depth: the children of the next node above. */
  const waiting: (readonly [first: number, last: number] | null)[] = [];
  for (let index = rows.length - 1; index >= 0; index -= 1) {
    const row = rows[index]!;
    const children = isLeaf(index) ? null : waiting[row.depth + 1]!;
    waiting[row.depth + 1] = null;
    if (children === null) below -= 1;
    const top = children === null ? below * GRAPH.row : (children[0] + children[1]) / 2;
    waiting[row.depth] = [top, waiting[row.depth]?.[1] ?? top];
    nodes.push({ row, left: row.depth * GRAPH.column, top, children });
  }
  return nodes.reverse();
}
