import { readFileSync } from 'node:fs';
import type { DecoderInterface } from '../runner/decoder-interface.ts';

/** Whether the processor sums products of 8 bits in 32; where nothing tells, it is taken to. */
export function hasVnni(): boolean {
  if (process.arch !== 'x64') return true;
  try {
    return /\bavx(512)?_vnni\b/.test(readFileSync('/proc/cpuinfo', 'utf8'));
  } catch {
    return true;
  }
}

/**
 * Without VNNI ONNX Runtime sums unsigned times signed bytes in 16 bits, which overflow. It can be told to take other
 * weights instead (see ort-session.ts), but does so for a graph itself alone and not in the branches of a merged decoder.
 */
export function overflowWarning(
  { couplesRows, useCacheBranch }: Pick<DecoderInterface, 'couplesRows' | 'useCacheBranch'>,
  vnni: boolean,
): string | null {
  return couplesRows && useCacheBranch !== null && !vnni
    ? 'this processor has no VNNI: the 8-bit products of a merged decoder overflow, and answers are worse; take another variant'
    : null;
}
