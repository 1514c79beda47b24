/**
 * Seed of every property test and random workload of a run. It is fixed, so that every run has the same
 * cases. `npm run test:explore` sets the variable to a random number.
 */
export const TEST_SEED = Number(process.env.TEST_SEED ?? 0);
if (!Number.isInteger(TEST_SEED))
  throw new Error(`TEST_SEED is '${process.env.TEST_SEED}'; it must be an integer. Unset it or correct it.`);

/** Returns how many of these random cases a run has: a tenth in `npm test`, all in `npm run test:all`. */
export const runs = (all: number): number => (process.env.TEST_CASES === 'tenth' ? Math.ceil(all / 10) : all);

/** Numbers in [0, 1) that depend on the seed of the run. Each stream number gives a different sequence. */
export const randomFrom = (stream: number): (() => number) => mulberry32(TEST_SEED + stream);

/** Numbers in [0, 1) that depend only on `seed`, for data that is the same in every run. */
export function mulberry32(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}
