import path from 'node:path';
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { repositoryOf, repositoryPaths } from '../../../origin/hub/cache.ts';
import { HubError } from '../../../origin/hub/hub-error.ts';
import { requireFilePath, requireRepository, requireRevision } from '../../../origin/hub/names.ts';

/** Segments with a meaning in a file system, and ordinary ones. */
const segment = fc.oneof(
  fc.constantFrom('.', '..', '', '~', 'onnx', 'model.onnx', 'C:', '\\..', '\0', '%2e%2e', ' '),
  fc.string({ maxLength: 4 }),
);
const anyPath = fc.array(segment, { minLength: 1, maxLength: 5 }).map((parts) => parts.join('/'));

const accepts = (check: (text: string) => string, text: string): boolean => {
  try {
    return check(text) === text;
  } catch (error) {
    expect(error).toBeInstanceOf(HubError);
    return false;
  }
};

test('accepts only file names that stay below their directory on POSIX and Windows', () => {
  let accepted = 0;
  fc.assert(
    fc.property(anyPath, (name) => {
      if (!accepts(requireFilePath, name)) return;
      accepted += 1;
      for (const [api, root] of [
        [path.posix, '/cache/root'],
        [path.win32, 'C:\\cache\\root'],
      ] as const) {
        const relative = api.relative(root, api.resolve(root, name));
        expect(relative === '' || relative.startsWith('..') || api.isAbsolute(relative)).toBe(false);
      }
    }),
    { numRuns: 2000, examples: [['.. / '], ['onnx/.. /x'], ['.. ./x']] },
  );
  expect(accepted).toBeGreaterThan(100);
});

test.each(['onnx/model_q4f16.onnx', 'config.json', '.gitattributes', 'a b/c…d.json'])(
  'accepts the file name %s',
  (name) => expect(accepts(requireFilePath, name)).toBe(true),
);

test.each(['onnx-community/Qwen3-0.6B-ONNX', 'a/b', 'owner_1/_name'])('accepts the model name %s', (name) => {
  expect(accepts(requireRepository, name)).toBe(true);
  expect(repositoryOf(path.basename(repositoryPaths('/cache', name).root))).toBe(name);
});

test.each(['gpt2', 'a/b/c', '../b', 'a/..', 'a--b/c', '', '-a/b', 'a/b?x', 'https://hub/a/b'])(
  'rejects the model name %s',
  (name) => expect(accepts(requireRepository, name)).toBe(false),
);

test.each([
  ['main', true],
  ['refs/pr/3', true],
  ['v1.0-rc_2', true],
  ['../main', false],
  ['a/../../b', false],
  ['/main', false],
  ['main/', false],
  ['', false],
  ['a b', false],
])('accepts the revision %s: %s', (name, expected) => {
  expect(accepts(requireRevision, name)).toBe(expected);
});
