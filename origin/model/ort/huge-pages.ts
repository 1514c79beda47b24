import { readFileSync } from 'node:fs';
import { memoryAdvice, openLibrary } from './ort-library.ts';

/**
 * Moves the weights of a model to pages of 2 MiB, where Linux has them (6.1 or later). A decode run reads all
 * weights once; with pages of 4 KiB, it looks up each page's address in main memory.
 */

type Range = readonly [start: bigint, end: bigint];

const PAGE = 2n << 20n;
/** MADV_COLLAPSE of sys/mman.h. It leaves pages that nothing has been written to. */
const COLLAPSE = 25;
/** As in /proc/self/maps: written and not shared, of no file. */
const ANONYMOUS = /^([0-9a-f]+)-([0-9a-f]+) rw-p \S+ \S+ 0(?:\s+\[(?:heap|anon:.*)\])?\s*$/;

/**
 * Runs `load`, returns the memory that it has freed to the system, and moves what is left of its allocations.
 * Does nothing if the system refuses.
 */
export function withHugePages<T>(load: () => T): T {
  if (process.platform !== 'linux') return load();
  const before = anonymousRanges();
  const loaded = load();
  returnFreeMemory();
  const collapse = memoryAdvice(COLLAPSE, PAGE);
  for (const [start, end] of without(anonymousRanges(), before)) collapse(start, end);
  return loaded;
}

/** ONNX Runtime computes constants while it loads. glibc would keep the memory of what it needed for them. */
function returnFreeMemory(): void {
  try {
    openLibrary(null).func('malloc_trim', 'int', ['size_t'])(0);
  } catch {
    // Another C library.
  }
}

function anonymousRanges(): Range[] {
  try {
    return readFileSync('/proc/self/maps', 'utf8')
      .split('\n')
      .flatMap((line) => {
        const [, start, end] = ANONYMOUS.exec(line) ?? [];
        return start === undefined ? [] : [[BigInt(`0x${start}`), BigInt(`0x${end}`)] as const];
      });
  } catch {
    return [];
  }
}

/** Returns the parts of ranges that lie in none of the others. Both are ascending and do not overlap. */
export function without(ranges: readonly Range[], others: readonly Range[]): Range[] {
  return ranges.flatMap(([start, end]) => {
    const parts: Range[] = [];
    let from = start;
    for (const [otherStart, otherEnd] of others) {
      if (otherEnd <= from || otherStart >= end) continue;
      if (otherStart > from) parts.push([from, otherStart]);
      from = otherEnd;
    }
    if (from < end) parts.push([from, end]);
    return parts;
  });
}
