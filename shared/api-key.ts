import type { SigningKey } from './signing.ts';

/**
 * API keys: `sk-` + public id (16) + `-` + secret (43) + check digits (6), all in base 62. The id may be
 * shown and logged. Its last 4 digits are keyed by a secret of the server, so that a forged id costs no
 * look-up. Ids that were made without such a secret have only the first 12 digits. The check digits are the
 * CRC-32 of everything before them. They reject mistyped keys without a look-up and let scanners recognize
 * leaked keys.
 */

const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const ID_LENGTH = 12;
const ID_CHECK_LENGTH = 4;
/** 62^43 > 2^256. */
const SECRET_LENGTH = 43;
const CHECK_LENGTH = 6;

const PATTERN = new RegExp(
  `^(sk-([0-9A-Za-z]{${ID_LENGTH}}(?:[0-9A-Za-z]{${ID_CHECK_LENGTH}})?)-[0-9A-Za-z]{${SECRET_LENGTH}})([0-9A-Za-z]{${CHECK_LENGTH}})$`,
);

/** Returns the CRC-32 (ISO 3309) of ASCII text. */
function crc32(text: string): number {
  let crc = 0xffffffff;
  for (let index = 0; index < text.length; index += 1) {
    crc ^= text.charCodeAt(index);
    for (let bit = 0; bit < 8; bit += 1) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0);
  }
  return ~crc >>> 0;
}

/** Returns the last `length` base-62 digits of a number. */
function lastDigits(value: number, length: number): string {
  let rest = value;
  let digits = '';
  for (let index = 0; index < length; index += 1) {
    digits = (DIGITS[rest % 62] as string) + digits;
    rest = Math.floor(rest / 62);
  }
  return digits;
}

const checkDigits = (body: string): string => lastDigits(crc32(body), CHECK_LENGTH);

/** Returns the keyed check of an id: the first 32 bits of its HMAC, modulo 62^4. */
async function idCheck(stem: string, secret: SigningKey): Promise<string> {
  const mac = await crypto.subtle.sign('HMAC', secret, new TextEncoder().encode(stem));
  return lastDigits(new DataView(mac).getUint32(0), ID_CHECK_LENGTH);
}

/** A source of cryptographically random bytes. */
type RandomBytes = (bytes: number) => Uint8Array;

/** Returns `length` uniform base-62 digits. Skips bytes above 247, so all digits are equally likely. */
function randomDigits(length: number, random: RandomBytes): string {
  let digits = '';
  while (digits.length < length) {
    for (const byte of random(length)) {
      if (byte < 248 && digits.length < length) digits += DIGITS[byte % 62] as string;
    }
  }
  return digits;
}

interface NewApiKey {
  readonly id: string;
  /** The whole key, which is shown only once. */
  readonly secret: string;
}

/** Returns a new id without a keyed check. */
const newId = (random: RandomBytes): string => randomDigits(ID_LENGTH, random);

export async function newCheckedId(random: RandomBytes, secret: SigningKey): Promise<string> {
  const stem = newId(random);
  return stem + (await idCheck(stem, secret));
}

export function newApiKey(random: RandomBytes, id = newId(random)): NewApiKey {
  const body = `sk-${id}-${randomDigits(SECRET_LENGTH, random)}`;
  return { id, secret: body + checkDigits(body) };
}

/** Returns the public id of a well-formed key; otherwise null. */
export function apiKeyId(key: string): string | null {
  const match = PATTERN.exec(key);
  if (!match || checkDigits(match[1] as string) !== match[3]) return null;
  return match[2] as string;
}

/** Returns whether the keyed check of an id is right; null if the id has none. */
export async function hasRightCheck(id: string, secret: SigningKey): Promise<boolean | null> {
  if (id.length === ID_LENGTH) return null;
  return (await idCheck(id.slice(0, ID_LENGTH), secret)) === id.slice(ID_LENGTH);
}
