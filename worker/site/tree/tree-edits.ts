import type { PromptToken } from '../api/completion-stream.ts';
import { tokenBytes } from '../api/token-bytes.ts';
import { type Generation, type NodeId, nodeOf, ROOT, type Tree, type TreeNode, walk } from './tree.ts';

/** Changes to a tree. Each returns a new tree that shares all unchanged nodes with the old one. */

const withNodes = (tree: Tree, changed: readonly TreeNode[], nextId = tree.nextId): Tree => {
  const nodes = new Map(tree.nodes);
  for (const node of changed) nodes.set(node.id, node);
  return { ...tree, nodes, nextId };
};

export const changeNode = (
  tree: Tree,
  id: NodeId,
  change: Partial<Pick<TreeNode, 'name' | 'bookmarked' | 'text'>>,
): Tree => withNodes(tree, [{ ...nodeOf(tree, id), ...change }]);

export type NewNode = Pick<TreeNode, 'text' | 'tokens' | 'generation'>;

export const typedNode = (text: string): NewNode => ({ text, tokens: [], generation: null });

/** Adds children to a node. Their ids are `tree.nextId` and the following. */
export function addChildren(tree: Tree, parent: NodeId, children: readonly NewNode[]): Tree {
  const added = children.map((child, index) => ({
    name: '',
    bookmarked: false,
    ...child,
    id: tree.nextId + index,
    parent,
    children: [],
  }));
  const node = nodeOf(tree, parent);
  const grown = { ...node, children: [...node.children, ...added.map(({ id }) => id)] };
  return withNodes(tree, [grown, ...added], tree.nextId + added.length);
}

/** What arrived for a node since the last change. */
export interface Growth {
  readonly text: string;
  readonly tokens: readonly PromptToken[];
  readonly generation: Partial<Generation>;
}

/** Appends generated text to several nodes at once. Ignores nodes that the tree does not have. */
export function growNodes(tree: Tree, growth: ReadonlyMap<NodeId, Growth>): Tree {
  const grown = [...growth].flatMap(([id, { text, tokens, generation }]) => {
    const node = tree.nodes.get(id);
    if (node === undefined || node.generation === null) return [];
    return {
      ...node,
      text: node.text + text,
      tokens: [...node.tokens, ...tokens],
      generation: { ...node.generation, ...generation },
    };
  });
  return grown.length === 0 ? tree : withNodes(tree, grown);
}

const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

const textOf = (tokens: readonly PromptToken[]): string =>
  decoder.decode(Uint8Array.from(tokens.flatMap(({ name }) => [...tokenBytes(name)])));

/**
 * Finds or makes the node whose text ends before token `at` of node `id`, so that branches can start there. Cuts the
 * node in two if the place is inside it. Moves back to the nearest token that starts a character of the text: several
 * tokens can share one, and the text lacks special tokens and trimmed stop texts.
 */
export function branchPoint(
  tree: Tree,
  id: NodeId,
  at: number,
): { readonly tree: Tree; readonly id: NodeId } {
  const node = nodeOf(tree, id);
  if (at >= node.tokens.length) return { tree, id };
  let place = at;
  while (!node.text.startsWith(textOf(node.tokens.slice(0, place)))) place -= 1;
  const text = textOf(node.tokens.slice(0, place));
  if (text === node.text) return { tree, id };
  if (place === 0) return { tree, id: node.parent ?? ROOT };
  return { tree: splitNode(tree, node, place, text), id };
}

/** Keeps the start, the name and the bookmark in the node. The rest and the children go to a new child. */
function splitNode(tree: Tree, node: TreeNode, at: number, text: string): Tree {
  const tailId = tree.nextId;
  const head = {
    ...node,
    text,
    tokens: node.tokens.slice(0, at),
    children: [tailId],
    generation: node.generation && { ...node.generation, finishReason: null },
  };
  const tail = {
    ...node,
    id: tailId,
    parent: node.id,
    text: node.text.slice(text.length),
    tokens: node.tokens.slice(at),
    name: '',
    bookmarked: false,
  };
  const moved = node.children.map((id) => ({ ...nodeOf(tree, id), parent: tailId }));
  return withNodes(tree, [head, tail, ...moved], tailId + 1);
}

/** Removes a node and its descendants. The root stays. */
export function prune(tree: Tree, id: NodeId): Tree {
  const { parent } = nodeOf(tree, id);
  if (parent === null) return tree;
  const node = nodeOf(tree, parent);
  const nodes = new Map(tree.nodes);
  for (const gone of walk(tree, id)) nodes.delete(gone.id);
  nodes.set(parent, { ...node, children: node.children.filter((child) => child !== id) });
  return { ...tree, nodes };
}
