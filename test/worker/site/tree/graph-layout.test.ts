import fc from 'fast-check';
import { expect, test } from 'vitest';
import { GRAPH, graphLayout } from '../../../../worker/site/tree/graph-layout.ts';
import { outlineRows } from '../../../../worker/site/tree/outline.ts';
import { anyTree } from './random-tree.ts';

test('a graph has each node in the column of its depth, in the middle of its children, above no other', () => {
  fc.assert(
    fc.property(anyTree, (tree) => {
      const nodes = graphLayout(outlineRows(tree, new Set()));
      const topOf = new Map(nodes.map(({ row, top }) => [row.node.id, top]));
      expect(nodes.map(({ row }) => row.node.id).toSorted()).toEqual([...tree.nodes.keys()].toSorted());
      for (const { row, left, top, children } of nodes) {
        const tops = row.node.children.map((id) => topOf.get(id)!);
        expect(left).toBe(row.depth * GRAPH.column);
        expect(children).toEqual(tops.length === 0 ? null : [tops[0], tops.at(-1)]);
        if (tops.length > 0) expect(top).toBe((tops[0]! + tops.at(-1)!) / 2);
      }
      for (const column of Map.groupBy(nodes, ({ row }) => row.depth).values())
        for (const [index, { top }] of column.entries())
          if (index > 0) expect(top - column[index - 1]!.top).toBeGreaterThanOrEqual(GRAPH.row);
    }),
  );
});

test('children of a collapsed node take no place', () => {
  fc.assert(
    fc.property(anyTree, (tree) => {
      expect(graphLayout(outlineRows(tree, new Set([0])))).toMatchObject([
        { left: 0, top: 0, children: null },
      ]);
    }),
  );
});
