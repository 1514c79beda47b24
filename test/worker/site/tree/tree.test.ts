import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  newTree,
  nodeOf,
  pathTo,
  ROOT,
  siblingOf,
  type Tree,
  textTo,
  walk,
} from '../../../../worker/site/tree/tree.ts';
import {
  addChildren,
  branchPoint,
  changeNode,
  growNodes,
  prune,
  typedNode,
} from '../../../../worker/site/tree/tree-edits.ts';
import { anyEdit, anyTree, choice, nodeAt } from './random-tree.ts';

const position = fc.double({ min: 0, max: 1, noNaN: true });
const ids = (tree: Tree) => [...walk(tree)].map(({ id }) => id);
const generation = { model: 'default', finishReason: 'length', promptTokens: 4, cachedTokens: 3 };
const generated = (...names: string[]) => ({ ...choice(names), generation });

/** Fails unless links, order and ids of the tree agree. */
function expectSound(tree: Tree): void {
  for (const node of tree.nodes.values()) {
    for (const child of node.children) expect(nodeOf(tree, child).parent).toBe(node.id);
    expect(node.children).toEqual(node.children.toSorted((a, b) => a - b));
    if (node.id !== ROOT) expect(nodeOf(tree, node.parent!).children).toContain(node.id);
    expect(node.id).toBeLessThan(tree.nextId);
  }
  expect(ids(tree).toSorted((a, b) => a - b)).toEqual([...tree.nodes.keys()].toSorted((a, b) => a - b));
}

describe('a tree', () => {
  test('is sound after any edits, and no edit changes an earlier tree', () => {
    fc.assert(
      fc.property(anyTree, fc.array(anyEdit, { maxLength: 10 }), (start, edits) => {
        const before = structuredClone(start);
        expectSound(edits.reduce((tree, edit) => edit(tree), start));
        expect(start).toEqual(before);
      }),
    );
  });

  test('is walked parents first, siblings in order, every node once', () => {
    fc.assert(
      fc.property(anyTree, (tree) => {
        const recursive = (id: number): number[] => [id, ...nodeOf(tree, id).children.flatMap(recursive)];
        expect(ids(tree)).toEqual(recursive(ROOT));
      }),
    );
  });

  test('of 10,000 nodes in one chain is read without recursion', () => {
    const tree = chain(10_000);
    expect(ids(tree)).toHaveLength(10_001);
    expect(textTo(tree, 10_000)).toBe('a'.repeat(10_001));
    expect(pathTo(tree, 10_000)).toHaveLength(10_001);
    expect(prune(tree, 1).nodes.size).toBe(1);
  });

  test('gives siblings by their distance', () => {
    const tree = addChildren(newTree('t', 'a'), ROOT, ['b', 'c', 'd'].map(typedNode));
    expect([-1, 1, 2, 3].map((step) => siblingOf(tree, 1, step))).toEqual([null, 2, 3, null]);
    expect(siblingOf(tree, ROOT, 1)).toBeNull();
  });
});

/** A tree of single children. */
function chain(length: number): Tree {
  const [root] = newTree('deep', 'a').nodes.values();
  const nodes = Array.from({ length: length + 1 }, (_, id) => ({
    ...root!,
    id,
    parent: id === 0 ? null : id - 1,
    children: id === length ? [] : [id + 1],
  }));
  return { name: 'deep', nodes: new Map(nodes.map((node) => [node.id, node])), nextId: length + 1 };
}

describe('pruning', () => {
  test('removes exactly the node and its descendants', () => {
    fc.assert(
      fc.property(anyTree, position, (tree, at) => {
        const id = nodeAt(tree, at);
        fc.pre(id !== ROOT);
        const gone = new Set([...walk(tree, id)].map((node) => node.id));
        const pruned = prune(tree, id);
        expectSound(pruned);
        expect(ids(pruned)).toEqual(ids(tree).filter((kept) => !gone.has(kept)));
      }),
    );
  });

  test('never removes the root', () => {
    const tree = newTree('t', 'a');
    expect(prune(tree, ROOT)).toBe(tree);
  });
});

describe('a branch point', () => {
  test('inside a node ends the text there and keeps the text of every leaf', () => {
    fc.assert(
      fc.property(anyTree, position, fc.nat(5), (tree, at, place) => {
        const id = nodeAt(tree, at);
        const point = branchPoint(tree, id, place);
        expectSound(point.tree);
        const leaves = (some: Tree) =>
          [...walk(some)]
            .filter(({ children }) => children.length === 0)
            .map((leaf) => textTo(some, leaf.id));
        expect(leaves(point.tree)).toEqual(leaves(tree));
        const { parent, text } = nodeOf(tree, id);
        const head = text.slice(0, place);
        const above = parent === null ? '' : textTo(tree, parent);
        expect(textTo(point.tree, point.id)).toBe(parent === null && head === '' ? text : above + head);
      }),
    );
  });

  const branches = (...names: string[]) => addChildren(newTree('t', 'x'), ROOT, [generated(...names)]);

  test('cuts text and tokens at the offset of a token', () => {
    const point = branchPoint(branches(' 🙂', ' b', ' c'), 1, 5);
    expect(point.id).toBe(1);
    expect(textTo(point.tree, 1)).toBe('x 🙂 b');
    expect(nodeOf(point.tree, 1).tokens).toEqual(choice([' 🙂', ' b']).tokens);
    expect(nodeOf(point.tree, 2)).toMatchObject(choice([' c']));
  });

  test('before the first token is the parent, and at the end the node', () => {
    const tree = branches(' a', '<|end|>');
    expect(branchPoint(tree, 1, 0)).toEqual({ tree, id: ROOT });
    expect(branchPoint(tree, 1, 2)).toEqual({ tree, id: 1 });
  });

  test('keeps the tokens of one character together', () => {
    const split = branchPoint(branches('a', 'bytes:\\xc3', 'é', 'b'), 1, 1).tree;
    expect(nodeOf(split, 1).tokens.map(({ name }) => name)).toEqual(['a']);
    expect(nodeOf(split, 2).tokens.map(({ name }) => name)).toEqual(['bytes:\\xc3', 'é', 'b']);
  });

  test('leaves name and bookmark at the start of the cut node, and its finish reason at the end', () => {
    const tree = changeNode(branches('a', 'b'), 1, { name: 'best', bookmarked: true });
    const split = branchPoint(tree, 1, 1).tree;
    expect(nodeOf(split, 1)).toMatchObject({ name: 'best', bookmarked: true, text: 'a' });
    expect(nodeOf(split, 1).generation?.finishReason).toBeNull();
    expect(nodeOf(split, 2)).toMatchObject({ name: '', bookmarked: false, text: 'b' });
    expect(nodeOf(split, 2).generation?.finishReason).toBe('length');
  });
});

describe('growing nodes', () => {
  const empty = { ...generated(), generation: { ...generation, finishReason: null } };

  test('get what was generated for them, and removed nodes do not return', () => {
    const start = prune(addChildren(newTree('t', 'x'), ROOT, [empty, empty]), 2);
    const grown = growNodes(start, new Map([1, 2].map((id) => [id, generated(' a', ' b')])));
    expect(nodeOf(grown, 1)).toMatchObject(generated(' a', ' b'));
    expect(grown.nodes.size).toBe(2);
  });

  test('keep the text that their children continue', () => {
    const start = addChildren(newTree('t', 'x'), ROOT, [generated(' a')]);
    const continued = addChildren(start, 1, [typedNode(' c')]);
    expect(growNodes(continued, new Map([[1, generated(' a', ' b')]]))).toBe(continued);
  });
});
