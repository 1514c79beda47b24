import { execFileSync, spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { openOrtApi } from '../../../../origin/model/ort/ort-capi.ts';
import { temporaryDirectory } from '../synthetic-runner.ts';

/** A library that offers a table of functions, as another version of ONNX Runtime does. */
const LIBRARY = `
  static void *table[1000];
  static const void *api(unsigned version) { return table; }
  static const char *version(void) { return "1.29.1"; }
  static const void *base[] = { (void *)api, (void *)version };
  const void *OrtGetApiBase(void) { return base; }
`;
const hasCompiler = process.platform === 'linux' && spawnSync('cc', ['--version']).status === 0;

it.runIf(hasCompiler)('ONNX Runtime of another version is refused before it is used', () => {
  const folder = temporaryDirectory();
  writeFileSync(join(folder, 'library.c'), LIBRARY);
  const library = join(folder, 'libonnxruntime.so.1');
  execFileSync('cc', ['-shared', '-fPIC', '-o', library, join(folder, 'library.c')]);
  expect(() => openOrtApi(library)).toThrow(
    `${library} is ONNX Runtime 1.29.1, but 1.30.0 is needed; run npm ci`,
  );
});
