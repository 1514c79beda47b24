import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { type ModelFiles, openWebSession, textsIn } from '../../../../origin/model/web/open-web-model.ts';
import type { WasmRuntime } from '../../../../origin/model/web/wasm-runtime.ts';

const DIRECTORY = path.resolve(import.meta.dirname, '../../../../origin/models/continuo-mini');
const FILES: ModelFiles = new Map(
  readdirSync(DIRECTORY).map((name) => [name, readFileSync(path.join(DIRECTORY, name))]),
);

/** Opens the built-in model with other files in place of its own. Nothing reaches the runtime. */
const openWith = (changed: Readonly<Record<string, Uint8Array>>) => {
  const files = new Map([...FILES, ...Object.entries(changed)]);
  return openWebSession(files, textsIn(files, 'my-model'), null as unknown as WasmRuntime);
};

test('a file that is no model is refused by name before WebAssembly reads it', async () => {
  await expect(openWith({ 'model.onnx': new TextEncoder().encode('no model') })).rejects.toThrow(
    'model.onnx',
  );
  await expect(openWith({ 'config.json': new TextEncoder().encode('{') })).rejects.toThrow('config.json');
});

test('a model beyond the memory of WebAssembly is refused with what it needs', async () => {
  const large = { length: 2 ** 32 } as Uint8Array;
  await expect(openWith({ 'more.data': large })).rejects.toThrow(
    /^my-model needs 4\.\d GiB with a context of 2048 tokens; a browser has 4 GiB$/,
  );
});
