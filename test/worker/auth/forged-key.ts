import { newApiKey } from '../../../shared/api-key.ts';

const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

/** A well-formed key with this public id; the secret is `fill`. */
export function keyOf(id: string, fill: number): string {
  const ofId = Uint8Array.from(id, (digit) => DIGITS.indexOf(digit));
  return newApiKey((count) => (count === id.length ? ofId : new Uint8Array(count).fill(fill))).secret;
}
