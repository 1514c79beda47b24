import fc from 'fast-check';
import { marked, type Token } from 'marked';
import { describe, expect, test } from 'vitest';
import { exportMarkdown } from '../../../../worker/site/tree/files/tree-markdown.ts';
import { newTree, nodeOf, ROOT, type Tree } from '../../../../worker/site/tree/tree.ts';
import { addChildren, changeNode, typedNode } from '../../../../worker/site/tree/tree-edits.ts';
import { anyTree } from './random-tree.ts';

/** Texts of the code blocks, as a Markdown parser reads them. */
function codeBlocks(markdown: string): string[] {
  const found: string[] = [];
  marked.walkTokens(marked.lexer(markdown), (token: Token) => {
    if (token.type === 'code') found.push(token.text);
  });
  return found;
}

/** Texts of the runs between forks, in the order of the walk. */
function runs(tree: Tree, id: number): string[] {
  const node = nodeOf(tree, id);
  const below = node.children.map((child) => runs(tree, child));
  if (below.length !== 1) return [node.text, ...below.flat()];
  const [first, ...later] = below[0]!;
  return [node.text + first, ...later];
}

describe('the Markdown of a tree', () => {
  test('has the exact text of every branch in a code block', () => {
    fc.assert(
      fc.property(anyTree, (tree) => {
        // Markdown has no carriage returns, parsers replace null characters, and marked miscounts the line
        // breaks at the end of a block.
        const plain = (text: string) => text.replace(/\r\n?/g, '\n').replaceAll('\0', '\ufffd').trimEnd();
        expect(codeBlocks(exportMarkdown(tree)).map(plain)).toEqual(runs(tree, ROOT).map(plain));
      }),
    );
  });

  test('shows names, bookmarks and lengths in nested lists', () => {
    let tree = addChildren(newTree('My *tree*', 'Once'), ROOT, [' a', ' b'].map(typedNode));
    tree = changeNode(addChildren(tree, 1, [typedNode('\n```')]), 1, { name: 'a_b', bookmarked: true });
    expect(exportMarkdown(tree)).toBe(
      [
        ...['# My *tree*', '', '```text', 'Once', '```', ''],
        ...['- ★ · **a\\_b** · typed', '', '  ````text', '   a', '  ```', '  ````', ''],
        ...['- typed', '', '  ```text', '   b', '  ```', ''],
      ].join('\n'),
    );
  });
});
