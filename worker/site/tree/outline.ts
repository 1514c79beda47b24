import { type NodeId, nodeOf, ROOT, type Tree, type TreeNode, walk } from './tree.ts';

/** One line of the outline. */
export interface OutlineRow {
  readonly node: TreeNode;
  /** Number of nodes above. */
  readonly depth: number;
  /** Number of forks above. A chain of single children stays at one indent: deep trees stay readable. */
  readonly indent: number;
  /** Number of descendants that a collapsed node hides. */
  readonly hidden: number;
}

/** Returns the rows of the nodes that no collapsed node hides, in the order of `walk`. */
export function outlineRows(tree: Tree, collapsed: ReadonlySet<NodeId>): readonly OutlineRow[] {
  const rows: OutlineRow[] = [];
  const waiting = [{ id: ROOT, depth: 0, indent: 0 }];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const { id, depth, indent } = next;
    const node = nodeOf(tree, id);
    const closed = collapsed.has(id) && node.children.length > 0;
    rows.push({ node, depth, indent, hidden: closed ? descendants(tree, id) : 0 });
    if (closed) continue;
    const inner = indent + (node.children.length > 1 ? 1 : 0);
    for (const child of node.children.toReversed())
      waiting.push({ id: child, depth: depth + 1, indent: inner });
  }
  return rows;
}

function descendants(tree: Tree, id: NodeId): number {
  let count = -1;
  for (const _ of walk(tree, id)) count += 1;
  return count;
}
