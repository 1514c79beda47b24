import { readFileSync } from 'node:fs';
import type { DecoderInterface } from '../runner/decoder-interface.ts';

/** Reports whether the processor sums 8-bit products in 32 bits; true if unknown. */
export function hasVnni(): boolean {
  if (process.arch !== 'x64') return true;
  try {
    return /\bavx(512)?_vnni\b/.test(readFileSync('/proc/cpuinfo', 'utf8'));
  } catch {
    return true;
  }
}

/**
 * Without VNNI, ONNX Runtime sums unsigned times signed bytes in 16 bits, which overflow. A session option
 * avoids this (ort-session.ts), but not inside the branches of a merged decoder.
 */
export function overflowWarning(
  { couplesRows, useCacheBranch }: Pick<DecoderInterface, 'couplesRows' | 'useCacheBranch'>,
  vnni: boolean,
): string | null {
  return couplesRows && useCacheBranch !== null && !vnni
    ? 'this processor has no VNNI, so 8-bit products of a merged decoder overflow and answers are wrong; take another variant'
    : null;
}
