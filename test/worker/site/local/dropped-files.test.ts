import { expect, test } from 'vitest';
import { droppedFiles, modelOf } from '../../../../worker/site/local/dropped-files.ts';

const NAMES = ['model.onnx', 'config.json', 'tokenizer.json'];

/** Files of a directory without their content. */
const filesOf = (directory: string, size = 1) =>
  NAMES.map((name) => ({ name, size, webkitRelativePath: `${directory}/${name}` }) as File);

test('a model is named by its directory', () => {
  expect(modelOf(filesOf('my-model')).name).toBe('my-model');
});

test('a model larger than the memory of a browser is refused with its size', () => {
  expect(() => modelOf(filesOf('large', 2 ** 31))).toThrow('large has 6.0 GiB; a browser has 4 GiB');
});

test('a file that is no model is refused by name', () => {
  expect(() => modelOf([filesOf('some').at(-1)!])).toThrow(/^tokenizer.json is no model: model.onnx, config/);
});

/** A directory that is dropped, whose files come in parts, as browsers give them. */
function droppedDirectory(name: string): DataTransfer {
  const files = NAMES.map((file) => ({
    isFile: true,
    fullPath: `/${name}/${file}`,
    file: (take: (file: File) => void) => take(new File([], file)),
  }));
  const parts = [files.slice(0, 2), files.slice(2), []];
  const createReader = () => ({ readEntries: (take: (part: object[]) => void) => take(parts.shift()!) });
  const directory = { isFile: false, createReader };
  return { items: [{ webkitGetAsEntry: () => directory }] } as unknown as DataTransfer;
}

test('a directory that is dropped is a model with its name', async () => {
  const { name, files } = modelOf(await droppedFiles(droppedDirectory('my-model')));
  expect([name, ...files.keys()]).toEqual(['my-model', ...NAMES]);
});
