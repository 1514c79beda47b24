import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { projectsOf } from '../vitest.config.ts';
import { isLong, testFiles } from './support/run/groups.ts';

/** Files of `npm test` if the mode is `quick`, and of `npm run test:all` if not. */
const filesOf = (mode: string): string[] =>
  projectsOf(mode)
    .flatMap(({ test: { include } }) => include)
    .toSorted();

test('`npm run test:all` runs every test file, and `npm test` all but the long ones', () => {
  expect(filesOf('test')).toEqual(testFiles().toSorted());
  expect(filesOf('quick')).toEqual(
    testFiles()
      .filter((file) => !isLong(file))
      .toSorted(),
  );
});

test('no test draws numbers that cannot be repeated', () => {
  const unrepeatable = /\bMath\.random\b|\bgetRandomValues\b|\brandomInt\b/;
  expect(testFiles().filter((file) => unrepeatable.test(readFileSync(file, 'utf8')))).toEqual([]);
});
