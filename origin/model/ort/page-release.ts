import koffi from 'koffi';
import { openLibrary } from './ort-library.ts';

/** MADV_DONTNEED of sys/mman.h: private anonymous memory reads as zeros afterwards. Other systems keep the pages. */
const DO_NOT_NEED = 4;

/** Returns `releasePages` of OrtApi. */
export function pageRelease(): (memory: Uint8Array) => void {
  if (process.platform !== 'linux') return () => {};
  const system = openLibrary(null);
  const advise = system.func('madvise', 'int', ['void *', 'size_t', 'int']);
  const page = BigInt(system.func('getpagesize', 'int', [])());
  return (memory) => {
    const address = koffi.address(memory);
    const first = ((address + page - 1n) / page) * page;
    const bytes = ((address + BigInt(memory.byteLength)) / page) * page - first;
    if (bytes > 0n) advise(first, bytes, DO_NOT_NEED);
  };
}
