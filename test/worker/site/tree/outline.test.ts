import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { outlineRows } from '../../../../worker/site/tree/outline.ts';
import { newTree, pathTo, ROOT, walk } from '../../../../worker/site/tree/tree.ts';
import { addChildren, typedNode } from '../../../../worker/site/tree/tree-edits.ts';
import { anyTree, nodeAt } from './random-tree.ts';

const position = fc.double({ min: 0, max: 1, noNaN: true });

describe('the rows of an outline', () => {
  test('are the nodes without collapsed ancestors, in the order of the walk', () => {
    fc.assert(
      fc.property(anyTree, fc.array(position, { maxLength: 4 }), (tree, places) => {
        const collapsed = new Set(places.map((place) => nodeAt(tree, place)));
        const rows = outlineRows(tree, collapsed);
        const shown = [...walk(tree)].filter(({ id }) =>
          pathTo(tree, id)
            .slice(0, -1)
            .every((above) => !collapsed.has(above.id)),
        );
        expect(rows.map(({ node }) => node)).toEqual(shown);
        for (const { node, depth } of rows) expect(depth).toBe(pathTo(tree, node.id).length - 1);
        expect(rows.reduce((count, { hidden }) => count + hidden + 1, 0)).toBe(tree.nodes.size);
      }),
    );
  });

  test('indent at forks only', () => {
    let tree = addChildren(newTree('t', 'a'), ROOT, [typedNode('b')]);
    tree = addChildren(tree, 1, ['c', 'd'].map(typedNode));
    tree = addChildren(tree, 2, [typedNode('e')]);
    expect(outlineRows(tree, new Set()).map(({ node, indent }) => [node.id, indent])).toEqual([
      [0, 0],
      [1, 0],
      [2, 1],
      [4, 1],
      [3, 1],
    ]);
  });
});
