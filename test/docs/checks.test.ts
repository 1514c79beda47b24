import { describe, expect, test } from 'vitest';
import { deadLinks, longSentences, unmarkedBlocks } from './checks.ts';
import { readPage } from './markdown.ts';

const words = (count: number) => `${'word '.repeat(count - 1)}end.`;

describe('sentences', () => {
  test('of more than 30 words are faults, in paragraphs, lists and quotes', () => {
    const long = words(31);
    for (const text of [long, `- ${long}`, `> ${long}`, `1. ${words(30)}\n   - ${long}`, `**${long}**`])
      expect(longSentences(readPage(text)), text).toHaveLength(1);
    expect(longSentences(readPage(`${words(30)} ${words(30)}`.replaceAll('word w', 'Word w')))).toEqual([]);
  });

  test('end at a full stop; inline code is one word', () => {
    const { sentences } = readPage('One `two three` four. `Five.six` seven: Eight.');
    expect(sentences.map(({ words }) => words)).toEqual([3, 2, 1]);
  });

  test('do not include code, tables and headings', () => {
    const long = words(40);
    const page = readPage(`# ${long}\n\n\`\`\`text\n${long}\n\`\`\`\n\n| a |\n| --- |\n| ${long} |\n`);
    expect(page.sentences).toEqual([]);
  });

  test('have the line of their block', () => {
    expect(readPage(`# Title\n\nFine.\n\n${words(31)}\n`).sentences.at(-1)).toMatchObject({
      line: 5,
      words: 31,
    });
  });
});

describe('links', () => {
  const other = readPage('# Title\n\n## Limits & quotas\n\n## Same\n\n## Same\n\n<a id="old"></a>\n');
  const find = (file: string) =>
    file === 'docs/other.md' ? other : file === 'worker' ? ('file' as const) : null;
  const dead = (link: string) => deadLinks('docs/page.md', readPage(`See [it](${link}).`), find);

  test('to pages, headings, folders and other sites are fine', () => {
    const fine = [
      'other.md',
      'other.md#limits--quotas',
      'other.md#same-1',
      'other.md#old',
      '../worker',
      'https://x.y/#z',
    ];
    for (const link of fine) expect(dead(link), link).toEqual([]);
  });

  test('to nothing are faults', () => {
    for (const link of ['none.md', 'other.md#limits', '../none', '#none'])
      expect(dead(link), link).toHaveLength(1);
  });

  test('in tables and by reference are checked', () => {
    const page = readPage('| a |\n| --- |\n| [x](none.md) |\n\n[y][ref]\n\n[ref]: none.md\n');
    expect(deadLinks('page.md', page, () => null)).toHaveLength(2);
  });
});

describe('code blocks', () => {
  const faults = (info: string) => unmarkedBlocks(readPage(`\`\`\`${info}\ncode\n\`\`\`\n`), ['sh']);

  test('that are run or say why not are fine', () => {
    for (const info of ['sh run=first-steps', 'json output', 'toml config', 'sh manual', 'text', 'mermaid'])
      expect(faults(info), info).toEqual([]);
  });

  test('without a tag, with an unknown one or in a language that no test runs are faults', () => {
    for (const info of ['', 'sh', 'json', 'sh run=', 'sh skip', 'go run=x', 'sh run=a output', 'text output'])
      expect(faults(info), info).toHaveLength(1);
  });
});
