/** An inclusive byte range for each position. */
export type BytePath = readonly (readonly [number, number])[];

/**
 * The numbers from `lo` to `hi`, written with `length` digits of a base: an inclusive range for each digit;
 * as few as possible.
 */
export function digitRanges(lo: number, hi: number, base: number, length: number): BytePath[] {
  if (length === 1) return [[[lo, hi]]];
  const unit = base ** (length - 1);
  const out: BytePath[] = [];
  for (let from = lo; from <= hi; ) {
    const first = Math.floor(from / unit);
    const full = from % unit === 0 ? Math.floor((hi + 1) / unit) - 1 : -1;
    const last = Math.max(first, full);
    const to = full >= first ? (last + 1) * unit - 1 : Math.min(hi, (first + 1) * unit - 1);
    const rest = full >= first ? [0, unit - 1] : [from % unit, to % unit];
    for (const digits of digitRanges(rest[0]!, rest[1]!, base, length - 1)) {
      out.push([[first, last], ...digits]);
    }
    from = to + 1;
  }
  return out;
}

/** By length: the first code points of a longer form, and what is added to the first byte. */
const FORMS = [
  { limit: 0x80, lead: 0 },
  { limit: 0x800, lead: 0xc0 },
  { limit: 0x10000, lead: 0xe0 },
  { limit: 0x110000, lead: 0xf0 },
] as const;

/** The UTF-8 forms of a range of scalar values (RFC 3629). After the first byte, each has six bits. */
export function utf8Paths(lo: number, hi: number): BytePath[] {
  return FORMS.flatMap(({ limit, lead }, index) => {
    const first = Math.max(lo, FORMS[index - 1]?.limit ?? 0);
    const last = Math.min(hi, limit - 1);
    const paths = first > last ? [] : digitRanges(first, last, 64, index + 1);
    return paths.map((path) =>
      path.map(
        ([low, high], at) => [low + (at === 0 ? lead : 0x80), high + (at === 0 ? lead : 0x80)] as const,
      ),
    );
  });
}
