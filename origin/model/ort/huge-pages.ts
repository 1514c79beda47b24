import { readFileSync } from 'node:fs';
import { memoryAdvice, openLibrary, returnFreeMemory } from './ort-library.ts';

/**
 * Moves the weights of a model to pages of 2 MiB, where Linux has them (6.1 or later). A decode run reads all
 * weights once; with pages of 4 KiB, it looks up each page's address in main memory.
 */

const HUGE = 2 << 20;
/** MADV_COLLAPSE of sys/mman.h. */
const COLLAPSE = 25;
/** As in /proc/self/maps: written and not shared, of no file. */
const ANONYMOUS = /^([0-9a-f]+)-([0-9a-f]+) rw-p \S+ \S+ 0(?:\s+\[(?:heap|anon:.*)\])?\s*$/;

type Collapse = (start: bigint, end: bigint) => void;

/**
 * Runs `load`, returns the memory that it has freed to the system, and moves what is left of its allocations:
 * whole blocks of 2 MiB that were not in use before. A model may be loaded into memory that another has
 * freed. Does nothing if the system refuses.
 * @param collapse moves a block; absent = the system does
 */
export function withHugePages<T>(load: () => T, collapse?: Collapse): T {
  if (process.platform !== 'linux') return load();
  returnFreeMemory();
  const before = new Set(usedBlocks());
  const loaded = load();
  // ONNX Runtime computes constants while it loads.
  returnFreeMemory();
  const move = collapse ?? memoryAdvice(COLLAPSE, BigInt(HUGE));
  for (const block of usedBlocks()) if (!before.has(block)) move(block, block + BigInt(HUGE));
  return loaded;
}

/** Yields the addresses of all blocks of 2 MiB of which each page is in main memory. */
function* usedBlocks(): Generator<bigint> {
  const system = openLibrary(null);
  const presence = system.func('mincore', 'int', ['void *', 'size_t', 'void *']);
  const pagesOfBlock = HUGE / system.func('getpagesize', 'int', [])();
  const huge = BigInt(HUGE);
  for (const [start, end] of anonymousRanges()) {
    const first = ((start + huge - 1n) / huge) * huge;
    const blocks = Number((end - first) / huge);
    if (blocks <= 0) continue;
    const pages = Buffer.alloc(blocks * pagesOfBlock);
    // The range may be gone meanwhile.
    if (presence(first, blocks * HUGE, pages) !== 0) continue;
    for (let block = 0; block < blocks; block++) {
      const at = block * pagesOfBlock;
      if (!pages.subarray(at, at + pagesOfBlock).includes(0)) yield first + huge * BigInt(block);
    }
  }
}

function anonymousRanges(): (readonly [start: bigint, end: bigint])[] {
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
