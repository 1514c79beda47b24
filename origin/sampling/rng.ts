/** The request, prompt and choice that a draw belongs to. */
export interface DrawIdentity {
  /** An integer of 64 bits; a text or a bigint if a double does not hold it exactly. */
  readonly seed: number | bigint | string;
  /** Index of the prompt within the request. */
  readonly prompt: number;
  /** Index of the choice within the prompt. */
  readonly choice: number;
}

/** Purposes of random numbers. Different purposes draw independently at the same step. */
export const DRAW_TOKEN = 0;
export const DRAW_XTC = 1;

const MULTIPLIER_0 = 0xd2511f53;
const MULTIPLIER_1 = 0xcd9e8d57;
const WEYL_0 = 0x9e3779b9;
const WEYL_1 = 0xbb67ae85;
const ROUNDS = 10;

/** High 32 bits of the product of two unsigned 32-bit integers. */
function multiplyHigh(a: number, b: number): number {
  const aLow = a & 0xffff;
  const aHigh = a >>> 16;
  const bLow = b & 0xffff;
  const bHigh = b >>> 16;
  const first = aHigh * bLow + ((aLow * bLow) >>> 16);
  const second = aLow * bHigh + (first & 0xffff);
  return (aHigh * bHigh + (first >>> 16) + (second >>> 16)) >>> 0;
}

/**
 * Philox4x32-10 (Salmon, Moraes, Dror, Shaw, "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011): a
 * bijection of 128-bit counters under a 64-bit key. Replaces the four counter words in `block` by four random
 * words.
 */
export function philox(block: Uint32Array, key0: number, key1: number): void {
  let [c0, c1, c2, c3] = [block[0]!, block[1]!, block[2]!, block[3]!];
  for (let round = 0; round < ROUNDS; round++) {
    const high0 = multiplyHigh(MULTIPLIER_0, c0);
    const low0 = Math.imul(MULTIPLIER_0, c0) >>> 0;
    const high1 = multiplyHigh(MULTIPLIER_1, c2);
    const low1 = Math.imul(MULTIPLIER_1, c2) >>> 0;
    c0 = (high1 ^ c1 ^ key0) >>> 0;
    c2 = (high0 ^ c3 ^ key1) >>> 0;
    c1 = low1;
    c3 = low0;
    key0 = (key0 + WEYL_0) >>> 0;
    key1 = (key1 + WEYL_1) >>> 0;
  }
  block[0] = c0;
  block[1] = c1;
  block[2] = c2;
  block[3] = c3;
}

/**
 * Uniform random numbers of one sequence. It has no state: a number is a function of seed, prompt, choice,
 * step and purpose. Draws therefore do not depend on the batch, the slot or the enabled samplers.
 */
export class DrawSource {
  readonly #key0: number;
  readonly #key1: number;
  readonly #identity: DrawIdentity;
  readonly #block = new Uint32Array(4);

  constructor(identity: DrawIdentity) {
    this.#identity = identity;
    // Two's complement.
    const key = BigInt.asUintN(64, BigInt(identity.seed));
    this.#key0 = Number(key & 0xffff_ffffn);
    this.#key1 = Number(key >> 32n);
  }

  /** A multiple of 2⁻⁵³ in [0, 1). */
  uniform(step: number, purpose: number): number {
    const block = this.#block;
    block[0] = step;
    block[1] = purpose;
    block[2] = this.#identity.prompt;
    block[3] = this.#identity.choice;
    philox(block, this.#key0, this.#key1);
    return ((block[0] >>> 5) * 2 ** 26 + (block[1] >>> 6)) / 2 ** 53;
  }
}
