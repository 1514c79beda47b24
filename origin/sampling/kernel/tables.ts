import { FRACTIONS } from '../exponential.ts';

/** What the kernel's functions look up, at the beginning of their memory; this many bytes. */
export const TABLE_BYTES = 1024;
/** Where 2^(−i/64) of the 64 values of i lie. */
export const FRACTIONS_AT = 0;
/** Where the sixteen shuffles lie that move the lanes whose bits are set to the front; the other lanes do not matter. */
export const SHUFFLES_AT = 512;

export function writeTables(memory: ArrayBuffer): void {
  new Float64Array(memory, FRACTIONS_AT).set(FRACTIONS);
  const shuffles = new Uint8Array(memory, SHUFFLES_AT);
  for (let bits = 0; bits < 16; bits++) {
    const lanes = [0, 1, 2, 3].filter((lane) => (bits >> lane) & 1);
    shuffles.set(
      lanes.flatMap((lane) => [0, 1, 2, 3].map((byte) => 4 * lane + byte)),
      16 * bits,
    );
  }
}
