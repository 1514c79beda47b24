import { readFileSync } from 'node:fs';

/** Reports whether the processor sums 8-bit products in 32 bits; null if unknown. */
export function hasVnni(): boolean | null {
  if (process.arch !== 'x64') return true;
  try {
    return /\bavx(512)?_vnni\b/.test(readFileSync('/proc/cpuinfo', 'utf8'));
  } catch {
    return null;
  }
}
