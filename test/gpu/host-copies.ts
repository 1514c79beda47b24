import { existsSync } from 'node:fs';
import { join } from 'node:path';
import koffi from 'koffi';
import { openLibrary } from '../../origin/model/ort/ort-library.ts';
import { median } from '../bench/statistics.ts';

export interface HostCopies {
  /** Folder that may have the CUDA runtime; else the system's is taken. */
  readonly folder: string;
  readonly bytes: number;
  /** Milliseconds, monotonic. */
  readonly now: () => number;
}

const LIBRARY = 'libcudart.so.13';
const DEVICE_TO_HOST = 2;
const RUNS = 9;

/** Returns the median milliseconds of a copy to the host, into pageable and into page-locked memory. @throws Error of CUDA */
export function hostCopyTimes({ folder, bytes, now }: HostCopies): Record<string, number> {
  const beside = join(folder, LIBRARY);
  const library = openLibrary(existsSync(beside) ? beside : LIBRARY);
  const text = library.func('cudaGetErrorString', 'const char *', ['int']);
  const call = (name: string, types: readonly string[], ...values: readonly unknown[]) => {
    const result: number = library.func(name, 'int', [...types])(...values);
    if (result !== 0) throw new Error(`${name}: ${text(result)}`);
  };
  const cell = new BigUint64Array(1);
  call('cudaMalloc', ['void *', 'size_t'], cell, bytes);
  const onDevice = cell[0]!;
  const onHost = new Uint8Array(new ArrayBuffer(bytes)).fill(1);
  const address = koffi.address(onHost);
  const copyMs = () => {
    const times = Array.from({ length: RUNS }, () => {
      const start = now();
      call('cudaMemcpy', ['void *', 'void *', 'size_t', 'int'], address, onDevice, bytes, DEVICE_TO_HOST);
      return now() - start;
    });
    return Number(median(times).toFixed(3));
  };
  try {
    const pageable = copyMs();
    call('cudaHostRegister', ['void *', 'size_t', 'unsigned int'], address, bytes, 0);
    const pageLocked = copyMs();
    call('cudaHostUnregister', ['void *'], address);
    return { pageable, 'page-locked': pageLocked };
  } finally {
    call('cudaFree', ['void *'], onDevice);
  }
}
