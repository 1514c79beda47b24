/** The UTF-8 form of a range of code points: an inclusive byte range for each position. */
type ByteSequence = readonly (readonly [number, number])[];

/** The first code point that needs more than 1, 2, 3 and 4 bytes. */
const LENGTH_LIMITS = [0x80, 0x800, 0x10000, 0x110000] as const;

/**
 * The UTF-8 forms of a range of scalar values (RFC 3629), as few as possible. The range is split where the encoded
 * length changes and where a continuation byte would not cover its full range.
 */
export function utf8Sequences(lo: number, hi: number): ByteSequence[] {
  const out: ByteSequence[] = [];
  let from = lo;
  for (const limit of LENGTH_LIMITS) {
    if (from > hi) break;
    if (from < limit) {
      splitAligned(from, Math.min(hi, limit - 1), out);
      from = limit;
    }
  }
  return out;
}

/** Expects `lo` and `hi` to have the same encoded length. */
function splitAligned(lo: number, hi: number, out: ByteSequence[]): void {
  const length = encodedLength(lo);
  for (let tail = 1; tail < length; tail++) {
    const span = (1 << (6 * tail)) - 1;
    if ((lo & ~span) === (hi & ~span)) continue;
    if ((lo & span) !== 0) {
      splitAligned(lo, lo | span, out);
      splitAligned((lo | span) + 1, hi, out);
      return;
    }
    if ((hi & span) !== span) {
      splitAligned(lo, (hi & ~span) - 1, out);
      splitAligned(hi & ~span, hi, out);
      return;
    }
  }
  const low = encode(lo, length);
  const high = encode(hi, length);
  out.push(low.map((byte, i) => [byte, high[i]!] as const));
}

function encodedLength(codePoint: number): number {
  return LENGTH_LIMITS.findIndex((limit) => codePoint < limit) + 1;
}

function encode(codePoint: number, length: number): number[] {
  if (length === 1) return [codePoint];
  const bytes: number[] = [];
  let rest = codePoint;
  for (let i = 1; i < length; i++) {
    bytes.unshift(0x80 | (rest & 0x3f));
    rest >>>= 6;
  }
  bytes.unshift(((0xf00 >> length) & 0xff) | rest);
  return bytes;
}
