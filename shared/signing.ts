/**
 * HMAC-SHA-256 over timestamp, nonce, method, path and the body's hash: how the origin knows its Worker.
 * WebCrypto only, so that both runtimes share it.
 */

export const SIGNATURE_HEADER = 'x-continuo-signature';

const encoder = new TextEncoder();

const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'));

/** Lower-case hex. */
export function toHex(bytes: Uint8Array): string {
  let hex = '';
  for (const byte of bytes) hex += HEX[byte];
  return hex;
}

export async function sha256Hex(data: string): Promise<string> {
  return toHex(new Uint8Array(await crypto.subtle.digest('SHA-256', encoder.encode(data))));
}

/** WebCrypto's CryptoKey, which not every runtime's types name globally. */
export type SigningKey = Awaited<ReturnType<typeof crypto.subtle.importKey>>;

export function importSigningKey(secret: string): Promise<SigningKey> {
  const algorithm = { name: 'HMAC', hash: 'SHA-256' };
  return crypto.subtle.importKey('raw', encoder.encode(secret), algorithm, false, ['sign', 'verify']);
}

export interface SignedParts {
  readonly method: string;
  /** Path with query. */
  readonly path: string;
  readonly body: string;
}

export interface SignatureClaims {
  /** Unix milliseconds. */
  readonly timestamp: number;
  /** Unique per request; the verifier refuses one it has seen. */
  readonly nonce: string;
}

async function message(parts: SignedParts, claims: SignatureClaims): Promise<Uint8Array<ArrayBuffer>> {
  const fields = [
    String(claims.timestamp),
    claims.nonce,
    parts.method,
    parts.path,
    await sha256Hex(parts.body),
  ];
  // A copy in a buffer of its own, which is what every runtime's types accept for signing.
  return new Uint8Array(encoder.encode(fields.join('\n')));
}

/** The value of the signature header: `v1.<timestamp>.<nonce>.<hex hmac>`. */
export async function sign(key: SigningKey, parts: SignedParts, claims: SignatureClaims): Promise<string> {
  const mac = await crypto.subtle.sign('HMAC', key, await message(parts, claims));
  return `v1.${claims.timestamp}.${claims.nonce}.${toHex(new Uint8Array(mac))}`;
}

const HEADER = /^v1\.(\d{1,15})\.([A-Za-z0-9_-]{8,64})\.([0-9a-f]{64})$/;

/** The claims of a header whose MAC is right; null otherwise. Age and replay are the caller's to judge. */
export async function verify(
  key: SigningKey,
  header: string | null | undefined,
  parts: SignedParts,
): Promise<SignatureClaims | null> {
  const match = HEADER.exec(header ?? '');
  if (!match) return null;
  const [, timestamp, nonce, hex] = match as unknown as [string, string, string, string];
  const claims = { timestamp: Number(timestamp), nonce };
  const mac = Uint8Array.from(hex.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));
  return (await crypto.subtle.verify('HMAC', key, mac, await message(parts, claims))) ? claims : null;
}
