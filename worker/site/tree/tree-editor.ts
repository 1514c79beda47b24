import { batch, computed, type ReadonlySignal, type Signal, signal } from '@preact/signals';
import { amend, type History, record, redo, rewrite, startHistory, undo } from './history.ts';
import { type OutlineRow, outlineRows } from './outline.ts';
import { type NodeId, nodeOf, pathTo, ROOT, siblingOf, type Tree, type TreeNode } from './tree.ts';
import { prune } from './tree-edits.ts';

/** A tree and the place in it where the visitor is. */
export interface Position {
  readonly tree: Tree;
  readonly selected: NodeId;
}

/** One open tree with its undo history. */
export interface TreeEditor {
  readonly id: string;
  readonly position: ReadonlySignal<Position>;
  readonly node: ReadonlySignal<TreeNode>;
  readonly collapsed: Signal<ReadonlySet<NodeId>>;
  readonly rows: ReadonlySignal<readonly OutlineRow[]>;
  readonly canUndo: ReadonlySignal<boolean>;
  readonly canRedo: ReadonlySignal<boolean>;
  /** Changes the tree as one step of the history. */
  edit(change: (tree: Tree) => Tree, select?: NodeId): void;
  /** Changes every state of the history: text that has arrived is no step to undo. */
  rewrite(change: (tree: Tree) => Tree): void;
  /** Selects a node and opens what hides it. Ignores ids that the tree does not have. */
  select(id: NodeId | null | undefined): void;
  /** The child that was selected last, otherwise the first; undefined for a leaf. */
  childOf(id: NodeId): NodeId | undefined;
  /** Shows or hides the descendants of a node. */
  fold(id: NodeId): void;
  prune(id: NodeId): void;
  readonly undo: () => void;
  readonly redo: () => void;
}

export interface StoredPosition extends Position {
  readonly collapsed: ReadonlySet<NodeId>;
}

export function createEditor(id: string, stored: StoredPosition): TreeEditor {
  const history = signal<History<Position>>(startHistory({ tree: stored.tree, selected: stored.selected }));
  const collapsed = signal(stored.collapsed);
  const position = computed(() => history.value.present);
  const tree = computed(() => position.value.tree);

  /** The child of each node that was selected last. */
  const visited = new Map<NodeId, NodeId>();
  const reveal = (tree: Tree, id: NodeId) => {
    const hiding = pathTo(tree, id).filter((node) => node.id !== id && collapsed.value.has(node.id));
    if (hiding.length === 0) return;
    const open = new Set(collapsed.value);
    for (const node of hiding) open.delete(node.id);
    collapsed.value = open;
  };
  const show = (next: History<Position>) =>
    batch(() => {
      const { tree: shown, selected } = next.present;
      // An undo frees no ids: text may still arrive for the nodes that had them.
      const kept = { ...shown, nextId: Math.max(shown.nextId, tree.peek().nextId) };
      const present = {
        tree: kept.nextId === shown.nextId ? shown : kept,
        selected: shown.nodes.has(selected) ? selected : ROOT,
      };
      const { parent } = nodeOf(present.tree, present.selected);
      if (parent !== null) visited.set(parent, present.selected);
      reveal(present.tree, present.selected);
      history.value = amend(next, present);
    });
  const edit = (change: (tree: Tree) => Tree, select = position.value.selected) =>
    show(record(history.value, { tree: change(tree.value), selected: select }));

  return {
    id,
    position,
    node: computed(() => nodeOf(tree.value, position.value.selected)),
    collapsed,
    rows: computed(() => outlineRows(tree.value, collapsed.value)),
    canUndo: computed(() => history.value.past.length > 0),
    canRedo: computed(() => history.value.future.length > 0),
    edit,
    rewrite: (change) => show(rewrite(history.value, (state) => ({ ...state, tree: change(state.tree) }))),
    select: (id) => {
      if (id != null && tree.value.nodes.has(id))
        show(amend(history.value, { tree: tree.value, selected: id }));
    },
    childOf: (id) => {
      const { children } = nodeOf(tree.value, id);
      const last = visited.get(id);
      return last !== undefined && children.includes(last) ? last : children[0];
    },
    fold: (id) => {
      const next = new Set(collapsed.value);
      if (!next.delete(id)) next.add(id);
      collapsed.value = next;
    },
    prune: (id) => {
      const next =
        siblingOf(tree.value, id, 1) ?? siblingOf(tree.value, id, -1) ?? nodeOf(tree.value, id).parent;
      if (next !== null) edit((tree) => prune(tree, id), next);
    },
    undo: () => show(undo(history.value)),
    redo: () => show(redo(history.value)),
  };
}
