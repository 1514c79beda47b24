import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { type CodeBlock, readPage } from './markdown.ts';

/** The pages for readers, by their path from the repository's root. */

const ROOT = path.resolve(import.meta.dirname, '../..');

export const PAGES = globSync(['*.md', 'docs/**/*.md'], { cwd: ROOT })
  .map((file) => file.replaceAll(path.sep, '/'))
  .toSorted();

export const pageOf = (file: string) => readPage(readFileSync(path.join(ROOT, file), 'utf8'));

export interface Example extends CodeBlock {
  readonly id: string;
  readonly file: string;
}

/** Code blocks tagged `run=ID`, which tests run. */
export const EXAMPLES: readonly Example[] = PAGES.flatMap((file) =>
  pageOf(file).blocks.flatMap((block) =>
    block.tags
      .filter((tag) => tag.startsWith('run='))
      .map((tag) => ({ ...block, file, id: tag.slice('run='.length) })),
  ),
);

/** The test that runs every example of a language. */
export const RUNNERS: Readonly<Record<string, string>> = {
  sh: 'test/e2e/documented-examples.long.test.ts',
  ts: 'test/e2e/documented-examples.long.test.ts',
  json: 'test/e2e/documented-examples.long.test.ts',
  python: 'test/tools/clients/documented-examples.clients.ts',
};

export const examplesIn = (language: string): Example[] =>
  EXAMPLES.filter((example) => example.language === language);

/** The code for a running system; the documentation prints where `npm start` listens by default. */
export const codeFor = ({ code }: Pick<Example, 'code'>, url: string): string =>
  code.replaceAll(/http:\/\/(?:127\.0\.0\.1|localhost):8787/g, url);
