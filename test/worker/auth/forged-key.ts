import { newApiKey } from '../../../shared/api-key.ts';

const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

/** Returns a well-formed key with this public id and the secret `fill`. */
export function keyOf(id: string, fill: number): string {
  const ofId = Uint8Array.from(id, (digit) => DIGITS.indexOf(digit));
  return newApiKey((count) => (count === id.length ? ofId : new Uint8Array(count).fill(fill))).secret;
}
