import { expect, test } from 'vitest';
import { groupOf, testFiles } from './support/groups.ts';

test('every test file belongs to exactly one group, and every group has files', async () => {
  const { default: config } = await import('../vitest.config.ts');
  const included = config.test!.projects!.map((project) => {
    if (typeof project !== 'object' || !('test' in project))
      throw new Error('a project without include list');
    return project.test!.include!;
  });
  expect(included.flat().toSorted()).toEqual(testFiles().toSorted());
  for (const files of included) expect(files.length).toBeGreaterThan(5);
});

test('a test that reaches workerd, a process or ONNX Runtime through other files is no unit test', () => {
  expect(groupOf('test/worker/limits/limits.test.ts')).toBe('worker');
  expect(groupOf('test/origin/main.test.ts')).toBe('origin');
  expect(groupOf('test/origin/model/layouts.test.ts')).toBe('origin');
  expect(groupOf('test/e2e/completions.test.ts')).toBe('e2e');
  expect(groupOf('test/worker/limits/quota/quota.test.ts')).toBe('unit');
  expect(groupOf('test/origin/engine/step-plan.test.ts')).toBe('unit');
});

test('a folder without a group cannot hold a test that starts something', () => {
  expect(() => groupOf('test/support/system.ts')).toThrow('test/support/system.ts reaches');
});
