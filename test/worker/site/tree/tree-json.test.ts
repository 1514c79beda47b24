import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ImportError } from '../../../../worker/site/tree/files/json-reader.ts';
import { exportJson, importJson } from '../../../../worker/site/tree/files/tree-json.ts';
import { type Tree, walk } from '../../../../worker/site/tree/tree.ts';
import { anyTree } from './random-tree.ts';

/** Everything but the ids, which an import assigns anew. */
function content(tree: Tree) {
  const nodes = [...walk(tree)];
  const indexes = new Map(nodes.map(({ id }, index) => [id, index]));
  const places = nodes.map(({ id, parent, children, ...rest }) => ({
    ...rest,
    parent: parent === null ? null : indexes.get(parent),
    children: children.map((child) => indexes.get(child)),
  }));
  return { name: tree.name, places };
}

const refusal = (value: unknown): string => {
  try {
    importJson(typeof value === 'string' ? value : JSON.stringify(value));
  } catch (error) {
    if (error instanceof ImportError) return error.message;
    throw error;
  }
  return 'accepted';
};

const file = (nodes: unknown, more: object = {}) => ({
  format: 'continuo-tree',
  version: 1,
  name: 'tree',
  nodes,
  ...more,
});

describe('the JSON of a tree', () => {
  test('imports as the tree that was exported', () => {
    fc.assert(
      fc.property(anyTree, (tree) => {
        expect(content(importJson(exportJson(tree)))).toEqual(content(tree));
      }),
    );
  });

  test('of an imported tree is the imported text', () => {
    fc.assert(
      fc.property(anyTree, (tree) => {
        const text = exportJson(tree);
        expect(exportJson(importJson(text))).toBe(text);
      }),
    );
  });

  test('of a chain of 10,000 nodes is read without recursion', () => {
    const nodes = Array.from({ length: 10_000 }, (_, index) => ({ parent: index - 1, text: 'a' }));
    const chain = file([
      { parent: null, text: '' },
      ...nodes.map((node) => ({ ...node, parent: node.parent + 1 })),
    ]);
    expect(importJson(JSON.stringify(chain)).nodes.size).toBe(10_001);
  });

  test.each([
    ['{"format":', /^The file is not JSON: /],
    [[], /^The file is JSON, but not a tree that this page exported\.$/],
    [{ choices: [] }, /^The file is JSON, but not a tree that this page exported\.$/],
    [file([], { version: 2 }), /^version is 2, but this page reads version 1 only\.$/],
    [file([]), /^nodes has 0 items, but must have 1 to 100000\.$/],
    [file({}), /^nodes is \{\}, but must be a list\.$/],
    [file([{ parent: 0, text: 'a' }]), /^nodes\[0\]\.parent is 0, but must be null\.$/],
    [
      file([
        { parent: null, text: 'a' },
        { parent: 1, text: 'b' },
      ]),
      /^nodes\[1\]\.parent is 1, but must be the index of an earlier node, 0 to 0\.$/,
    ],
    [file([{ parent: null, text: 7 }]), /^nodes\[0\]\.text is 7, but must be a text\.$/],
    [
      file([
        {
          parent: null,
          text: 'a',
          logprobs: { tokens: ['a'], token_logprobs: [], top_logprobs: [{}], text_offset: [0] },
        },
      ]),
      /^nodes\[0\] is .* lists of tokens, logprobs and token ids have equal lengths\.$/,
    ],
  ])('with a fault is refused, and the message names the place: %#', (value, message) => {
    expect(refusal(value)).toMatch(message);
  });
});
