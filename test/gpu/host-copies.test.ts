import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { openLibrary } from '../../origin/model/ort/ort-library.ts';
import { hostCopyTimes } from './host-copies.ts';

/** A CUDA runtime whose device is a buffer: copies count as 5 ms on its clock, 1 ms into registered memory. */
const LIBRARY = `
  #include <stdlib.h>
  #include <string.h>
  static char *registered = 0, *device = 0;
  static double clock_ms = 0;
  double now_ms(void) { return clock_ms; }
  const char *cudaGetErrorString(int error) { return error == 2 ? "out of memory" : "invalid argument"; }
  int cudaMalloc(void **address, size_t bytes) {
    if (bytes > 1 << 20) return 2;
    *address = device = calloc(bytes, 1);
    return 0;
  }
  int cudaFree(void *address) { if (address != device) return 1; free(address); return 0; }
  int cudaMemcpy(void *to, const void *from, size_t bytes, int kind) {
    if (kind != 2 || from != device) return 1;
    memcpy(to, from, bytes);
    clock_ms += to == registered ? 1 : 5;
    return 0;
  }
  int cudaHostRegister(void *address, size_t bytes, unsigned flags) { registered = address; return flags; }
  int cudaHostUnregister(void *address) { return address != registered; }
`;
const hasCompiler = process.platform === 'linux' && spawnSync('cc', ['--version']).status === 0;

it.runIf(hasCompiler)('copies to the host are timed into pageable, then into page-locked memory', () => {
  const folder = mkdtempSync(join(tmpdir(), 'continuo-cudart-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  writeFileSync(join(folder, 'runtime.c'), LIBRARY);
  const library = join(folder, 'libcudart.so.13');
  execFileSync('cc', ['-shared', '-fPIC', '-o', library, join(folder, 'runtime.c')]);
  const now: () => number = openLibrary(library).func('now_ms', 'double', []);
  expect(hostCopyTimes({ folder, bytes: 4096, now })).toEqual({ pageable: 5, 'page-locked': 1 });
  expect(() => hostCopyTimes({ folder, bytes: 2 ** 21, now })).toThrow('cudaMalloc: out of memory');
});
