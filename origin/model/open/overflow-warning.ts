import type { DecoderInterface } from '../decoder/decoder-interface.ts';

/**
 * Without VNNI, ONNX Runtime sums unsigned times signed bytes in 16 bits, which overflow. A session option
 * avoids this (ort-session.ts), but not inside the branches of a merged decoder.
 * @param vnni null if unknown
 */
export function overflowWarning(
  { couplesRows, useCacheBranch }: Pick<DecoderInterface, 'couplesRows' | 'useCacheBranch'>,
  vnni: boolean | null,
): string | null {
  return couplesRows && useCacheBranch !== null && vnni === false
    ? 'this processor has no VNNI, so 8-bit products of a merged decoder overflow and answers are wrong; take another variant'
    : null;
}
