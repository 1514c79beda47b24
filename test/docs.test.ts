import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { deadLinks, longSentences, unmarkedBlocks } from './docs/checks.ts';
import { EXAMPLES, PAGES, pageOf, RUNNERS } from './docs/pages.ts';

const ROOT = path.resolve(import.meta.dirname, '..');

const find = (file: string) => {
  if (!existsSync(path.join(ROOT, file))) return null;
  return file.endsWith('.md') ? pageOf(file) : 'file';
};

function faultsOf(file: string): string[] {
  const page = pageOf(file);
  return [
    ...longSentences(page),
    ...deadLinks(file, page, find),
    ...unmarkedBlocks(page, Object.keys(RUNNERS)),
  ];
}

test.each(PAGES)('%s has short sentences, working links and marked code blocks', (file) => {
  expect(faultsOf(file)).toEqual([]);
});

describe('examples', () => {
  test('have ids that occur once', () => {
    const ids = EXAMPLES.map(({ id }) => id);
    expect(ids.filter((id, index) => ids.indexOf(id) !== index)).toEqual([]);
  });

  test.each(Object.entries(RUNNERS))('in %s are run by %s', (language, runner) => {
    expect(readFileSync(path.join(ROOT, runner), 'utf8')).toContain(`examplesIn('${language}')`);
  });
});
