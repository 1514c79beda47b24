import { readFileSync } from 'node:fs';

/** Whether the processor sums products of 8 bits in 32; where nothing tells, it is taken to. */
export function hasVnni(): boolean {
  if (process.arch !== 'x64' || process.platform !== 'linux') return true;
  return /\bavx(512)?_vnni\b/.test(readFileSync('/proc/cpuinfo', 'utf8'));
}
