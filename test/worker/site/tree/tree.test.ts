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
import { anyEdit, anyTree, nodeAt } from './random-tree.ts';

const position = fc.double({ min: 0, max: 1, noNaN: true });
const ids = (tree: Tree) => [...walk(tree)].map(({ id }) => id);
const token = (name: string) => ({ name, id: null, logprob: -1, alternatives: [] });
const generated = (...names: string[]) => ({ text: names.join(''), tokens: names.map(token), generation });
const generation = { model: 'default', finishReason: 'length', promptTokens: 4, cachedTokens: 3 };

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
    ...{ id, parent: id === 0 ? null : id - 1, children: id === length ? [] : [id + 1] },
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
        const before = nodeOf(tree, id).parent === null ? ROOT : nodeOf(tree, id).parent!;
        expect(textTo(tree, id).startsWith(textTo(point.tree, point.id))).toBe(true);
        expect(textTo(point.tree, point.id).startsWith(textTo(tree, before))).toBe(true);
      }),
    );
  });

  const branches = (...names: string[]) => addChildren(newTree('t', 'x'), ROOT, [generated(...names)]);

  test('is the end of the tokens before it', () => {
    const point = branchPoint(branches(' a', ' b', ' c'), 1, 2);
    expect(point.id).toBe(1);
    expect(textTo(point.tree, 1)).toBe('x a b');
    expect(textTo(point.tree, 2)).toBe('x a b c');
    expect(branchPoint(branches(' a'), 1, 0).id).toBe(ROOT);
    expect(branchPoint(branches(' a'), 1, 1).id).toBe(1);
  });

  test('moves to the start of a character that several tokens share', () => {
    const tokens = ['a', 'bytes:\\xc3', 'bytes:\\xa9', 'b'].map(token);
    const tree = addChildren(newTree('t', 'x'), ROOT, [{ text: 'aéb', tokens, generation }]);
    expect(textTo(branchPoint(tree, 1, 2).tree, 1)).toBe('xa');
    expect(textTo(branchPoint(tree, 1, 3).tree, 1)).toBe('xaé');
  });

  test('before a hidden end token is the end of the node', () => {
    const tokens = [' a', '<|end|>'].map(token);
    const tree = addChildren(newTree('t', 'x'), ROOT, [{ text: ' a', tokens, generation }]);
    expect(branchPoint(tree, 1, 1)).toEqual({ tree, id: 1 });
  });

  test('leaves name and bookmark at the start of the cut node, and its finish reason at the end', () => {
    const tree = changeNode(branches('a', 'b'), 1, { name: 'best', bookmarked: true });
    const split = branchPoint(tree, 1, 1).tree;
    expect(nodeOf(split, 1)).toMatchObject({ name: 'best', bookmarked: true, text: 'a' });
    expect(nodeOf(split, 1).generation?.finishReason).toBeNull();
    expect(nodeOf(split, 2)).toMatchObject({ name: '', bookmarked: false, text: 'b', tokens: [token('b')] });
    expect(nodeOf(split, 2).generation?.finishReason).toBe('length');
  });
});

describe('growing nodes', () => {
  test('appends tokens to several nodes and ignores removed ones', () => {
    const empty = { ...generated(), generation: { ...generation, finishReason: null } };
    const start = addChildren(newTree('t', 'x'), ROOT, [empty, empty]);
    const growth = { text: ' a', tokens: [token(' a')], generation: { finishReason: 'stop' } };
    const grown = growNodes(
      prune(start, 2),
      new Map([
        [1, growth],
        [2, growth],
      ]),
    );
    expect(textTo(grown, 1)).toBe('x a');
    expect(nodeOf(grown, 1).generation?.finishReason).toBe('stop');
    expect(grown.nodes.has(2)).toBe(false);
  });
});
