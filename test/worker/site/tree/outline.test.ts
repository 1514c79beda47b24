import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { outlineRows, rowWindow, scrollToRow } from '../../../../worker/site/tree/outline.ts';
import { newTree, pathTo, ROOT, walk } from '../../../../worker/site/tree/tree.ts';
import { addChildren, typedNode } from '../../../../worker/site/tree/tree-edits.ts';
import { anyTree, nodeAt } from './random-tree.ts';

const position = fc.double({ min: 0, max: 1, noNaN: true });
const ROW = 28;

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

describe('the window of rendered rows', () => {
  const count = fc.nat(20_000);
  const pixels = fc.integer({ min: 0, max: 600_000 });

  test('covers what is visible and little more', () => {
    fc.assert(
      fc.property(count, pixels, fc.integer({ min: 0, max: 2_000 }), (rows, scroll, height) => {
        const { start, end } = rowWindow(rows, scroll, height, ROW);
        expect(start).toBeGreaterThanOrEqual(0);
        expect(end).toBeGreaterThanOrEqual(start);
        expect(end).toBeLessThanOrEqual(rows);
        expect(end - start).toBeLessThanOrEqual(Math.ceil(height / ROW) + 18);
        if (scroll + height > rows * ROW) return;
        expect(start * ROW).toBeLessThanOrEqual(scroll);
        expect(end * ROW).toBeGreaterThanOrEqual(Math.min(scroll + height, rows * ROW));
      }),
    );
  });

  test('scrolls to a row by the least distance', () => {
    expect(scrollToRow(0, 500, 280, ROW)).toBe(0);
    expect(scrollToRow(20, 500, 280, ROW)).toBe(500);
    expect(scrollToRow(100, 500, 280, ROW)).toBe(101 * ROW - 280);
  });
});
