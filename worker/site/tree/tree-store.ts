import type { Database } from '../store/database.ts';
import { type NodeId, ROOT, type Tree, type TreeNode, walk } from './tree.ts';
import type { StoredPosition } from './tree-editor.ts';

/** Keeps trees in IndexedDB: a record for each tree, and its nodes one by one: changes write little. */

export interface TreeRecord {
  readonly id: string;
  readonly name: string;
  /** Number of nodes. */
  readonly size: number;
  readonly nextId: NodeId;
  readonly selected: NodeId;
  readonly collapsed: ReadonlySet<NodeId>;
  /** Unix milliseconds. */
  readonly changed: number;
}

export type StoredNode = Omit<TreeNode, 'children'>;

/** All nodes of one tree; their keys are pairs of tree and node. */
const nodesOf = (id: string) => IDBKeyRange.bound([id], [id, []]);

/** Returns the trees, the last changed first. */
export const listTrees = async (database: Database): Promise<readonly TreeRecord[]> =>
  ((await database.getAll('trees')) as TreeRecord[]).toSorted((a, b) => b.changed - a.changed);

/** Returns null if there is no such tree. */
export async function loadTree(database: Database, record: TreeRecord): Promise<StoredPosition | null> {
  const { id, name, nextId, selected, collapsed } = record;
  const stored = (await database.getAll('nodes', nodesOf(id))) as StoredNode[];
  if (stored[0]?.id !== ROOT) return null;
  const nodes = new Map(stored.map((node) => [node.id, { ...node, children: [] as NodeId[] }]));
  for (const node of stored) if (node.parent !== null) nodes.get(node.parent)?.children.push(node.id);
  // Another tab may have removed the parent of a node.
  const reached = [...walk({ name, nodes, nextId })];
  const tree = { name, nodes: new Map(reached.map((node) => [node.id, node])), nextId };
  return { tree, selected: tree.nodes.has(selected) ? selected : ROOT, collapsed };
}

/** Writes what differs from the tree that was saved last; null = unknown, which writes everything. */
export async function saveTree(
  database: Database,
  record: TreeRecord,
  saved: Tree | null,
  tree: Tree,
): Promise<void> {
  const writing = database.transaction(['trees', 'nodes'], 'readwrite');
  const nodes = writing.objectStore('nodes');
  const writes: Promise<unknown>[] = [writing.objectStore('trees').put(record, record.id)];
  if (saved === null) writes.push(nodes.delete(nodesOf(record.id)));
  for (const [id, node] of tree.nodes) {
    if (saved?.nodes.get(id) === node) continue;
    const { children: _, ...stored } = node;
    writes.push(nodes.put(stored, [record.id, id]));
  }
  for (const id of saved?.nodes.keys() ?? [])
    if (!tree.nodes.has(id)) writes.push(nodes.delete([record.id, id]));
  // Otherwise a page that is left would abort the transaction.
  writing.commit();
  await Promise.all([...writes, writing.done]);
}

export async function deleteTree(database: Database, id: string): Promise<void> {
  const writing = database.transaction(['trees', 'nodes'], 'readwrite');
  await Promise.all([
    writing.objectStore('trees').delete(id),
    writing.objectStore('nodes').delete(nodesOf(id)),
    writing.done,
  ]);
}
