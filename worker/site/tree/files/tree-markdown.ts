import { nodeOf, ROOT, type Tree, type TreeNode } from '../tree.ts';

/** Deeper forks are not indented further. */
const MAX_INDENT = 40;

/** Returns the tree as nested lists. A chain of single children is one item; texts are code blocks. */
export function exportMarkdown(tree: Tree): string {
  const parts = [`# ${tree.name.replace(/\s+/g, ' ').trim() || 'Tree'}\n`];
  const waiting = [{ id: ROOT, level: 0 }];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const { id, level } = next;
    const run = chainFrom(tree, nodeOf(tree, id));
    parts.push(level === 0 ? block(textOf(run)) : item(run, Math.min(level, MAX_INDENT)));
    for (const child of run.at(-1)!.children.toReversed()) waiting.push({ id: child, level: level + 1 });
  }
  return parts.join('\n');
}

/** Returns the node and its descendants up to the next fork or leaf. */
function chainFrom(tree: Tree, start: TreeNode): readonly TreeNode[] {
  const run = [start];
  for (let node = start; node.children.length === 1; run.push(node)) node = nodeOf(tree, node.children[0]!);
  return run;
}

const textOf = (run: readonly TreeNode[]): string => run.map(({ text }) => text).join('');

function item(run: readonly TreeNode[], level: number): string {
  const names = run.flatMap(({ name }) => (name === '' ? [] : [`**${escaped(name)}**`]));
  const tokens = run.reduce((sum, node) => sum + node.tokens.length, 0);
  const about = [
    ...(run.some(({ bookmarked }) => bookmarked) ? ['★'] : []),
    ...names,
    tokens === 0 ? 'typed' : `${tokens} tokens`,
    ...new Set(run.flatMap(({ generation }) => (generation ? [`\`${generation.model}\``] : []))),
  ];
  const indent = '  '.repeat(level - 1);
  const lines = block(textOf(run)).replace(/(^|[\r\n])(?=[^\r\n])/g, `$1${indent}  `);
  return `${indent}- ${about.join(' · ')}\n\n${lines}`;
}

/** Returns a code block whose fence is longer than every run of backticks in the text. */
function block(text: string): string {
  const longest = Math.max(2, ...Array.from(text.matchAll(/`+/g), ([run]) => run.length));
  const fence = '`'.repeat(longest + 1);
  return `${fence}text\n${text === '' ? '' : `${text}\n`}${fence}\n`;
}

const escaped = (name: string): string => name.replace(/\s+/g, ' ').replace(/[\\`*_[\]<>&]/g, '\\$&');
