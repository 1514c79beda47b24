import { type NodeId, nodeOf, ROOT, type Tree, type TreeNode, walk } from './tree.ts';

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

/**
 * Gives several nodes the text that was generated for them so far. Ignores nodes that the tree does not have,
 * and nodes with children, which continue the text as it was.
 */
export function growNodes(tree: Tree, generated: ReadonlyMap<NodeId, NewNode>): Tree {
  const grown = [...generated].flatMap(([id, content]) => {
    const node = tree.nodes.get(id);
    return node === undefined || node.children.length > 0 ? [] : [{ ...node, ...content }];
  });
  return grown.length === 0 ? tree : withNodes(tree, grown);
}

/**
 * Finds or makes the node whose text ends at a position in node `id`, so that branches can start there. Cuts
 * the node in two if the position is inside it.
 * @param position UTF-16 units from the start of the node's text
 */
export function branchPoint(
  tree: Tree,
  id: NodeId,
  position: number,
): { readonly tree: Tree; readonly id: NodeId } {
  const node = nodeOf(tree, id);
  const head = node.text.slice(0, position);
  if (head === node.text) return { tree, id };
  if (head === '') return { tree, id: node.parent ?? ROOT };
  return { tree: splitNode(tree, node, head), id };
}

/** Keeps the beginning, the name and the bookmark in the node. Rest and children go to a new child. */
function splitNode(tree: Tree, node: TreeNode, text: string): Tree {
  const offset = Array.from(text).length;
  const tailId = tree.nextId;
  const head = {
    ...node,
    text,
    tokens: node.tokens.filter((token) => token.offset < offset),
    children: [tailId],
    generation: node.generation && { ...node.generation, finishReason: null },
  };
  const tail = {
    ...node,
    id: tailId,
    parent: node.id,
    text: node.text.slice(text.length),
    tokens: node.tokens
      .slice(head.tokens.length)
      .map((token) => ({ ...token, offset: token.offset - offset })),
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
