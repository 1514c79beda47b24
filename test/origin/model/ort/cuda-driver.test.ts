import { execFileSync, spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { openCudaDriver } from '../../../../origin/model/ort/cuda-driver.ts';
import { newDirectory } from '../../../support/new-directory.ts';

/**
 * A driver with two cards, numbered 40 and 41 inside, whose free memory can only be asked in their own
 * context.
 */
const LIBRARY = `
  #include <stddef.h>
  #include <string.h>
  static size_t current = 0;
  int cuInit(unsigned flags) { return 0; }
  int cuGetErrorString(int error, const char **text) { *text = "invalid device ordinal"; return 0; }
  int cuDeviceGetCount(int *count) { *count = 2; return 0; }
  int cuDriverGetVersion(int *version) { *version = 13000; return 0; }
  int cuDeviceGet(int *device, int id) { if (id > 1) return 101; *device = 40 + id; return 0; }
  int cuDeviceGetName(char *name, int length, int device) { strncpy(name, device == 40 ? "Card A" : "Card B", length); return 0; }
  int cuDeviceGetAttribute(int *value, int attribute, int device) {
    if (attribute != 75 && attribute != 76) return 1;
    *value = attribute == 75 ? device - 32 : 6;
    return 0;
  }
  int cuDevicePrimaryCtxRetain(size_t *context, int device) { *context = 0x700000000000 + device; return 0; }
  int cuDevicePrimaryCtxRelease_v2(int device) { return 0; }
  int cuCtxPushCurrent_v2(size_t context) { current = context; return 0; }
  int cuCtxPopCurrent_v2(size_t *context) { *context = current; current = 0; return 0; }
  int cuMemGetInfo_v2(size_t *free, size_t *total) {
    if (current == 0) return 201;
    *free = (current - 0x700000000000) << 30;
    *total = (size_t)80 << 30;
    return 0;
  }
`;
const hasCompiler = process.platform === 'linux' && spawnSync('cc', ['--version']).status === 0;
const hasDriver = (() => {
  try {
    openCudaDriver();
    return true;
  } catch {
    return false;
  }
})();

it.runIf(hasCompiler)(
  'the driver tells its version, and the names, compute capabilities and free memory of the cards',
  () => {
    const folder = newDirectory();
    writeFileSync(join(folder, 'driver.c'), LIBRARY);
    const library = join(folder, 'libcuda.so.1');
    execFileSync('cc', ['-shared', '-fPIC', '-o', library, join(folder, 'driver.c')]);
    const script = `
    const { openCudaDriver } = await import(${JSON.stringify(new URL('../../../../origin/model/ort/cuda-driver.ts', import.meta.url).href)});
    const driver = openCudaDriver();
    const free = driver.cards.map((_, id) => driver.freeBytes(id) / 2 ** 30);
    let refused = '';
    try { driver.freeBytes(2); } catch (error) { refused = error.message; }
    console.log(JSON.stringify([driver.version, driver.cards, free, refused]));
  `;
    const env = { ...process.env, LD_LIBRARY_PATH: folder };
    const told = execFileSync(process.execPath, ['--input-type=module', '-e', script], {
      env,
      encoding: 'utf8',
    });
    expect(JSON.parse(told)).toEqual([
      13_000,
      [
        { name: 'Card A', capability: [8, 6] },
        { name: 'Card B', capability: [9, 6] },
      ],
      [40, 41],
      'refuses cuDeviceGet with error 101: invalid device ordinal',
    ]);
  },
);

it.skipIf(hasDriver)('a missing driver is named', () => {
  expect(() => openCudaDriver()).toThrow('is missing (libcuda.so.1)');
});
