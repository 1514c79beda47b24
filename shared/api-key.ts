/**
 * API keys: `sk-` + public id (12) + `-` + secret (43) + check digits (6), all in base 62. The id may be shown and
 * logged. The check digits are the CRC-32 of everything before them. They reject mistyped keys without a look-up and let
 * scanners recognize leaked keys.
 */

const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const ID_LENGTH = 12;
/** 62^43 > 2^256. */
const SECRET_LENGTH = 43;
const CHECK_LENGTH = 6;

const PATTERN = new RegExp(
  `^(sk-([0-9A-Za-z]{${ID_LENGTH}})-[0-9A-Za-z]{${SECRET_LENGTH}})([0-9A-Za-z]{${CHECK_LENGTH}})$`,
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

function checkDigits(body: string): string {
  let rest = crc32(body);
  let digits = '';
  for (let index = 0; index < CHECK_LENGTH; index += 1) {
    digits = (DIGITS[rest % 62] as string) + digits;
    rest = Math.floor(rest / 62);
  }
  return digits;
}

/** Returns `length` uniform base-62 digits. Skips bytes of 248 and above, so that all digits are equally likely. */
function randomDigits(length: number, random: (bytes: number) => Uint8Array): string {
  let digits = '';
  while (digits.length < length) {
    for (const byte of random(length)) {
      if (byte < 248 && digits.length < length) digits += DIGITS[byte % 62] as string;
    }
  }
  return digits;
}

export interface NewApiKey {
  readonly id: string;
  /** The whole key, which is shown only once. */
  readonly secret: string;
}

/** @param random a source of cryptographically random bytes */
export function newApiKey(random: (bytes: number) => Uint8Array): NewApiKey {
  const id = randomDigits(ID_LENGTH, random);
  const body = `sk-${id}-${randomDigits(SECRET_LENGTH, random)}`;
  return { id, secret: body + checkDigits(body) };
}

/** Returns the public id of a well-formed key; otherwise null. */
export function apiKeyId(key: string): string | null {
  const match = PATTERN.exec(key);
  if (!match || checkDigits(match[1] as string) !== match[3]) return null;
  return match[2] as string;
}
