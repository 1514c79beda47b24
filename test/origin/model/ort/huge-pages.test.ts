import { readFileSync } from 'node:fs';
import koffi from 'koffi';
import { describe, expect, it } from 'vitest';
import { withHugePages } from '../../../../origin/model/ort/huge-pages.ts';
import { openLibrary, pageRelease } from '../../../../origin/model/ort/ort-library.ts';

const MIB = 2 ** 20;
const COLLAPSE = 25;

/** Not of the C library's, which may have free memory that was mapped before. */
const newMemory = (): Uint8Array => new Uint8Array(new WebAssembly.Memory({ initial: 512 }).buffer).fill(7);

/**
 * Whether the system gives huge pages now. It refuses if Linux is older than 6.1, forbids them to the
 * process, or has no memory in pieces of 2 MiB.
 */
function givesHugePages(): boolean {
  const memory = newMemory();
  const page = BigInt(2 * MIB);
  const start = ((koffi.address(memory) + page - 1n) / page) * page;
  return (
    openLibrary(null).func('madvise', 'int', ['void *', 'size_t', 'int'])(start, 30 * MIB, COLLAPSE) === 0
  );
}

const hugeBytes = (): number =>
  1024 * Number(/AnonHugePages:\s+(\d+)/.exec(readFileSync('/proc/self/smaps_rollup', 'utf8'))![1]);

/** Runs `load`, and returns how many whole blocks of a memory are to be moved. */
function movedBlocks(memory: Uint8Array, load: () => void): number {
  const start = koffi.address(memory);
  const end = start + BigInt(memory.length);
  let blocks = 0;
  withHugePages(load, (from, to) => {
    if (from >= start && to <= end) blocks++;
  });
  return blocks;
}

describe.skipIf(process.platform !== 'linux')('what is loaded', () => {
  it('lies in huge pages if the system gives them, and keeps its content', ({ skip }) => {
    const before = hugeBytes();
    const loaded = withHugePages(newMemory);
    const moved = hugeBytes() - before;
    expect(loaded.every((byte) => byte === 7)).toBe(true);
    skip(moved === 0 && !givesHugePages(), 'the system gives no huge pages');
    // It may have few.
    expect(moved).toBeGreaterThanOrEqual(2 * MIB);
  });

  it('may be in memory that was freed before; memory in use, or used in part, stays', () => {
    const freed = newMemory();
    pageRelease()(freed);
    expect(movedBlocks(freed, () => freed.fill(7))).toBeGreaterThanOrEqual(15);
    expect(movedBlocks(freed, () => undefined)).toBe(0);
    pageRelease()(freed);
    expect(movedBlocks(freed, () => freed.fill(7, 0, 1024))).toBe(0);
  });
});
