import { execFileSync, spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { newDirectory } from './new-directory.ts';

const [DRIVER, DRAWS, DRAW_TOKENS] = [
  new URL('./fake-cuda-driver/driver.c', import.meta.url),
  new URL('./fake-cuda-driver/draws.c', import.meta.url),
  new URL('../../origin/model/runner/device/kernels/draw-tokens.cu', import.meta.url),
].map((url) => fileURLToPath(url)) as [string, string, string];

export const hasCompiler = process.platform === 'linux' && spawnSync('cc', ['--version']).status === 0;

/** Builds a CUDA driver without a card in a new folder and returns both. */
export function buildFakeCudaDriver(): { readonly folder: string; readonly file: string } {
  const folder = newDirectory();
  const file = join(folder, 'libcuda.so.1');
  const kernel = `-DDRAW_TOKENS="${DRAW_TOKENS}"`;
  execFileSync('cc', ['-O1', '-shared', '-fPIC', kernel, '-o', file, DRIVER, DRAWS, '-lm']);
  return { folder, file };
}
