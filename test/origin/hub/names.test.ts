import path from 'node:path';
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { repositoryOf, repositoryPaths } from '../../../origin/hub/cache-layout.ts';
import { HubError } from '../../../origin/hub/hub-error.ts';
import { requireInside, requireRepository, requireRevision } from '../../../origin/hub/names.ts';

/** Segments that matter to a file system, beside ordinary ones. */
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

test('an accepted file name stays below its directory, on POSIX and on Windows', () => {
  let accepted = 0;
  fc.assert(
    fc.property(anyPath, (name) => {
      if (!accepts(requireInside, name)) return;
      accepted += 1;
      for (const [api, root] of [
        [path.posix, '/cache/root'],
        [path.win32, 'C:\\cache\\root'],
      ] as const) {
        const relative = api.relative(root, api.resolve(root, name));
        expect(relative === '' || relative.startsWith('..') || api.isAbsolute(relative)).toBe(false);
      }
    }),
    { numRuns: 2000 },
  );
  expect(accepted).toBeGreaterThan(100);
});

test.each(['onnx/model_q4f16.onnx', 'config.json', '.gitattributes', 'a b/c…d.json'])(
  'the file name %s is accepted',
  (name) => expect(accepts(requireInside, name)).toBe(true),
);

test.each(['onnx-community/Qwen3-0.6B-ONNX', 'a/b', 'owner_1/_name'])('the model %s is accepted', (name) => {
  expect(accepts(requireRepository, name)).toBe(true);
  expect(repositoryOf(path.basename(repositoryPaths('/cache', name).root))).toBe(name);
});

test.each(['gpt2', 'a/b/c', '../b', 'a/..', 'a--b/c', '', '-a/b', 'a/b?x', 'https://hub/a/b'])(
  'the model %s is refused',
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
])('the revision %s is accepted: %s', (name, expected) => {
  expect(accepts(requireRevision, name)).toBe(expected);
});
