/** Slopes of ALiBi for each head, arXiv 2108.12409: powers of 2^(−most / heads), where heads is a power of two. */
const powers = (heads: number, most: number): number[] =>
  Array.from({ length: heads }, (_, head) => 2 ** ((-most / heads) * (head + 1)));

/** Other numbers of heads take the missing ones from twice the next lower power of two: BLOOM and Falcon. */
export function bloomSlopes(heads: number): number[] {
  const lower = 2 ** Math.floor(Math.log2(heads));
  const between = powers(2 * lower, 8).filter((_, index) => index % 2 === 0);
  return [...powers(lower, 8), ...between.slice(0, heads - lower)];
}

/** Other numbers of heads take every second one of the next higher power of two first: MPT. */
export function mptSlopes(heads: number, most: number): number[] {
  const higher = 2 ** Math.ceil(Math.log2(heads));
  const all = powers(higher, most);
  if (higher === heads) return all;
  const every = (first: number) => all.filter((_, index) => index % 2 === first);
  return [...every(1), ...every(0)].slice(0, heads);
}
