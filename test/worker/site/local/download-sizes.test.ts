import { statSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import {
  GPU_RUNTIME_BYTES,
  MODEL_BYTES,
  RUNTIME_BYTES,
} from '../../../../worker/site/local/download-sizes.ts';

const bytesOf = (path: string): number => statSync(path).size;

test('the progress of a download ends at the size of the files', () => {
  const directory = new URL('../../../../origin/models/continuo-mini/', import.meta.url);
  const sizes = Object.keys(MODEL_BYTES).map((name) => [
    name,
    bytesOf(fileURLToPath(new URL(name, directory))),
  ]);
  expect(Object.fromEntries(sizes)).toEqual(MODEL_BYTES);
  const bytesOfBuild = (name: string) =>
    bytesOf(fileURLToPath(import.meta.resolve(`onnxruntime-web/ort-wasm-simd-threaded${name}.wasm`)));
  expect(['', '.jspi'].map(bytesOfBuild)).toEqual([RUNTIME_BYTES, GPU_RUNTIME_BYTES]);
});
