import { readFileSync } from 'node:fs';
import { release } from 'node:os';
import { expect, test } from 'vitest';
import { withHugePages, without } from '../../../../origin/model/ort/huge-pages.ts';

const MIB = 2 ** 20;

/** Whether Linux lets a process ask for huge pages, and can collapse memory (6.1). */
function mayCollapse(): boolean {
  if (process.platform !== 'linux') return false;
  const [major = 0, minor = 0] = release().split('.').map(Number);
  if (major < 6 || (major === 6 && minor < 1)) return false;
  try {
    return !readFileSync('/sys/kernel/mm/transparent_hugepage/enabled', 'utf8').includes('[never]');
  } catch {
    return false;
  }
}

const hugeBytes = (): number =>
  1024 * Number(/AnonHugePages:\s+(\d+)/.exec(readFileSync('/proc/self/smaps_rollup', 'utf8'))![1]);

test.skipIf(!mayCollapse())('what is loaded lies in huge pages, and keeps its content', () => {
  const before = hugeBytes();
  const loaded = withHugePages(() => new Uint8Array(32 * MIB).fill(7));
  expect(hugeBytes() - before).toBeGreaterThan(24 * MIB);
  expect(loaded.every((byte) => byte === 7)).toBe(true);
});

test('memory that was there before stays as it is', () => {
  const range = (start: number, end: number) => [BigInt(start), BigInt(end)] as const;
  const others = [range(2, 4), range(6, 8), range(20, 30)];
  expect(without([range(0, 3), range(4, 6), range(7, 12), range(20, 30)], others)).toEqual([
    range(0, 2),
    range(4, 6),
    range(8, 12),
  ]);
});
