import path from 'node:path';
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { repositoryOf, repositoryPaths } from '../../../../origin/hub/fetch/cache.ts';
import { HubError } from '../../../../origin/hub/fetch/hub-error.ts';
import {
  nameOrOption,
  readRepositoryName,
  requireFilePath,
  requireRepository,
  requireRevision,
} from '../../../../origin/hub/fetch/names.ts';
import { runs } from '../../../support/random.ts';

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
    { numRuns: runs(2000), examples: [['.. / '], ['onnx/.. /x'], ['.. ./x']] },
  );
  expect(accepted).toBeGreaterThan(runs(200));
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

const HUB = 'https://huggingface.co';
const PHI = 'microsoft/Phi-3-mini-4k-instruct-onnx';
const SHA = 'c0ffee00c0ffee00c0ffee00c0ffee00c0ffee00';

test.each<[string, string, (string | null)?, (string | null)?]>([
  ['Qwen/Qwen3-0.6B', 'Qwen/Qwen3-0.6B'],
  ['Qwen/Qwen3-0.6B/', 'Qwen/Qwen3-0.6B'],
  [' Qwen/Qwen3-0.6B\n', 'Qwen/Qwen3-0.6B'],
  ['a/b:q4', 'a/b', null, 'q4'],
  ['a/b@v1.0', 'a/b', 'v1.0'],
  ['a/b@refs/pr/1', 'a/b', 'refs/pr/1'],
  ['a/b@main:Q4_K_M', 'a/b', 'main', 'Q4_K_M'],
  ['a/b/tree/main', 'a/b', 'main'],
  [`${HUB}/a/b`, 'a/b'],
  [`${HUB}/a/b/`, 'a/b'],
  [`${HUB}//a/b`, 'a/b'],
  [`${HUB}/a/b.git`, 'a/b'],
  [`${HUB}/a/b?library=transformers`, 'a/b'],
  [`${HUB}/a/b#model-card`, 'a/b'],
  [`${HUB}/a/b@v1`, 'a/b', 'v1'],
  [`${HUB}/a/b:Q8_0`, 'a/b', null, 'Q8_0'],
  ['http://www.huggingface.co/a/b', 'a/b'],
  ['HTTPS://HuggingFace.co/a/b', 'a/b'],
  ['huggingface.co/a/b', 'a/b'],
  ['hf.co/a/b', 'a/b'],
  ['https://hf.co/a/b:Q4_K_M', 'a/b', null, 'Q4_K_M'],
  ['hf://a/b@v1', 'a/b', 'v1'],
  ['a/b:cpu/acc-4', 'a/b', null, 'cpu/acc-4'],
  ['git@hf.co:a/b.git', 'a/b'],
  [`${HUB}/api/models/a/b`, 'a/b'],
  [`${HUB}/a/b/tree/main`, 'a/b', 'main'],
  [`${HUB}/a/b/tree/main/`, 'a/b', 'main'],
  [`${HUB}/a/b/tree/refs%2Fpr%2F3`, 'a/b', 'refs/pr/3'],
  [`${HUB}/a/b/tree/refs/pr/3/x`, 'a/b', 'refs/pr/3', 'x'],
  [`${HUB}/${PHI}/tree/main/cpu/acc-4`, PHI, 'main', 'cpu/acc-4'],
  [`${HUB}/a/b/blob/main/m-Q4_K_M.gguf`, 'a/b', 'main', 'm-Q4_K_M.gguf'],
  [`${HUB}/a/b/resolve/${SHA}/F16/m%20F16.gguf?download=true`, 'a/b', SHA, 'F16/m F16.gguf'],
  [`${HUB}/a/b/raw/main/config.json`, 'a/b', 'main', 'config.json'],
  [`${HUB}/a/b/commit/${SHA}`, 'a/b', SHA],
  [`${HUB}/a/b?show_file_info=m-Q8_0.gguf`, 'a/b', null, 'm-Q8_0.gguf'],
  [`${HUB}/a/b/tree/main?show_file_info=F16%2Fm.gguf`, 'a/b', 'main', 'F16/m.gguf'],
])('reads the name %j', (text, repository, revision = null, variant = null) => {
  expect(readRepositoryName(text, HUB)).toEqual({ kind: 'repository', repository, revision, variant });
});

test('reads an address of the configured hub', () => {
  const { repository, revision } = readRepositoryName('http://hub:8080/x/a/b/tree/v1', 'http://hub:8080/x');
  expect([repository, revision]).toEqual(['a/b', 'v1']);
});

test.each([
  ['gpt2', '"gpt2" is not a model name: it must have the form owner/name'],
  [`${HUB}/gpt2`, '"gpt2" is not a model name: it must have the form owner/name'],
  [`${HUB}/`, 'is not a model name: it must have the form owner/name'],
  [
    `${HUB}/datasets/a/b`,
    `${HUB}/datasets/a/b is no model: the address of a model has the form ${HUB}/owner/name`,
  ],
  [`${HUB}/spaces/a/b`, 'is no model'],
  [`${HUB}/a/b/discussions/4`, `"${HUB}/a/b/discussions/4" is not a model name: did you mean a/b?`],
  [`${HUB}/a/b/tree`, 'did you mean a/b?'],
  ['a/b/c', '"a/b/c" is not a model name: did you mean a/b?'],
  [`${HUB}/a/b/tree/..%2F..`, '"../.." is not a valid revision'],
  ['a/b@', '"" is not a valid revision'],
  [
    'https://example.com/m.gguf',
    'https://example.com/m.gguf is not an address of https://huggingface.co; give owner/name, another hub in HF_ENDPOINT, or the path of a downloaded file',
  ],
  ['https://huggingface.co.evil.example/a/b', 'is not an address of'],
])('refuses the name %j and says what to give', (text, message) => {
  expect(() => readRepositoryName(text, HUB)).toThrow(message);
});

test('takes the revision of a name unless an option names another one', () => {
  expect(nameOrOption('revision', null, 'main', 'main')).toBe('main');
  expect(nameOrOption('revision', 'v1', 'main', 'main')).toBe('v1');
  expect(nameOrOption('revision', 'v1', 'v1', 'main')).toBe('v1');
  expect(() => nameOrOption('revision', 'v1', 'v2', 'main')).toThrow(
    "--revision v2 differs from v1 in the model's name; give one of them",
  );
});
