import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { projectsOf } from '../vitest.config.ts';
import { groupOf, isLong, testFiles } from './support/groups.ts';

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

test('a test that reaches workerd, a process or ONNX Runtime through other files is no unit test', () => {
  expect(groupOf('test/worker/limits/limits.test.ts')).toBe('worker');
  expect(groupOf('test/origin/main.long.test.ts')).toBe('origin');
  expect(groupOf('test/origin/model/layouts.long.test.ts')).toBe('origin');
  expect(groupOf('test/e2e/completions.long.test.ts')).toBe('e2e');
  expect(groupOf('test/worker/limits/quota/quota.test.ts')).toBe('unit');
  expect(groupOf('test/origin/engine/scheduling/step-plan.test.ts')).toBe('unit');
});

test('a folder without a group cannot hold a test that starts something', () => {
  expect(() => groupOf('test/support/system.ts')).toThrow('test/support/system.ts reaches');
});

test('no test draws numbers that cannot be repeated', () => {
  const unrepeatable = /\bMath\.random\b|\bgetRandomValues\b|\brandomInt\b/;
  expect(testFiles().filter((file) => unrepeatable.test(readFileSync(file, 'utf8')))).toEqual([]);
});
