import { readFileSync } from 'node:fs';

let hasInstructions: boolean | null | undefined;

/** Reports whether the processor sums 8-bit products in 32 bits; null if unknown. Reads it once. */
export function hasVnni(): boolean | null {
  if (hasInstructions === undefined) hasInstructions = readProcessor();
  return hasInstructions;
}

function readProcessor(): boolean | null {
  if (process.arch !== 'x64') return true;
  try {
    return /\bavx(512)?_vnni\b/.test(readFileSync('/proc/cpuinfo', 'utf8'));
  } catch {
    return null;
  }
}
