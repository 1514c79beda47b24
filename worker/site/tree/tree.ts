import type { TokenizedText } from '../api/whole-choices.ts';

/** A tree of completions: each node adds text to the text of its parent. */

/** How a node was generated. */
export interface Generation {
  readonly model: string;
  /** Null while tokens arrive, and for a node that was cut off or split. */
  readonly finishReason: string | null;
  /** Prompt tokens of the request, and those of them that came from the prefix cache; null if unknown. */
  readonly promptTokens: number | null;
  readonly cachedTokens: number | null;
}

export type NodeId = number;

/** Typed text has no tokens. */
export interface TreeNode extends TokenizedText {
  readonly id: NodeId;
  /** Null for the root. */
  readonly parent: NodeId | null;
  /** In order of creation, which is the order of their ids. */
  readonly children: readonly NodeId[];
  /** Empty if the node has no name. */
  readonly name: string;
  readonly bookmarked: boolean;
  /** Null for typed text. */
  readonly generation: Generation | null;
}

export interface Tree {
  readonly name: string;
  readonly nodes: ReadonlyMap<NodeId, TreeNode>;
  /** Higher than every id this tree ever had, so that no new node has an undone one's id. */
  readonly nextId: NodeId;
}

export const ROOT: NodeId = 0;

export const newTree = (name: string, prompt = ''): Tree => ({
  name,
  nodes: new Map([
    [
      ROOT,
      {
        id: ROOT,
        parent: null,
        children: [],
        text: prompt,
        tokens: [],
        name: '',
        bookmarked: false,
        generation: null,
      },
    ],
  ]),
  nextId: ROOT + 1,
});

/** @throws if the tree has no such node */
export function nodeOf(tree: Tree, id: NodeId): TreeNode {
  const node = tree.nodes.get(id);
  if (node === undefined) throw new Error(`The tree has no node ${id}.`);
  return node;
}

/** Returns the nodes from the root to `id`, both included. */
export function pathTo(tree: Tree, id: NodeId): readonly TreeNode[] {
  const path: TreeNode[] = [];
  for (let at: NodeId | null = id; at !== null; ) {
    const node = nodeOf(tree, at);
    path.push(node);
    at = node.parent;
  }
  return path.reverse();
}

/** Returns the whole text from the root to the end of `id`: the prompt for its branches. */
export const textTo = (tree: Tree, id: NodeId): string =>
  pathTo(tree, id)
    .map(({ text }) => text)
    .join('');

/**
 * Yields `from` and its descendants, parents before children and siblings in order. Not recursive: a tree can
 * be deep.
 */
export function* walk(tree: Tree, from: NodeId = ROOT): Generator<TreeNode> {
  const waiting = [from];
  for (let id = waiting.pop(); id !== undefined; id = waiting.pop()) {
    const node = nodeOf(tree, id);
    yield node;
    for (let index = node.children.length - 1; index >= 0; index -= 1) waiting.push(node.children[index]!);
  }
}

/** Returns the sibling `step` places after the node, or null beyond the ends. */
export function siblingOf(tree: Tree, id: NodeId, step: number): NodeId | null {
  const { parent } = nodeOf(tree, id);
  if (parent === null) return null;
  const { children } = nodeOf(tree, parent);
  return children[children.indexOf(id) + step] ?? null;
}
