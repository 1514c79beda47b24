import { readFileSync } from 'node:fs';
import koffi from 'koffi';
import { expect, test } from 'vitest';
import { withHugePages, without } from '../../../../origin/model/ort/huge-pages.ts';
import { openLibrary } from '../../../../origin/model/ort/ort-library.ts';

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

test.skipIf(process.platform !== 'linux')(
  'what is loaded lies in huge pages if the system gives them, and keeps its content',
  ({ skip }) => {
    const before = hugeBytes();
    const loaded = withHugePages(newMemory);
    const moved = hugeBytes() - before;
    expect(loaded.every((byte) => byte === 7)).toBe(true);
    skip(moved === 0 && !givesHugePages(), 'the system gives no huge pages');
    expect(moved).toBeGreaterThan(24 * MIB);
  },
);

test('memory that was there before stays as it is', () => {
  const range = (start: number, end: number) => [BigInt(start), BigInt(end)] as const;
  const others = [range(2, 4), range(6, 8), range(20, 30)];
  expect(without([range(0, 3), range(4, 6), range(7, 12), range(20, 30)], others)).toEqual([
    range(0, 2),
    range(4, 6),
    range(8, 12),
  ]);
});
