/**
 * Signatures by which the origin authenticates its Worker: HMAC-SHA-256 over timestamp, nonce, method, path
 * and the body's hash. Uses only WebCrypto, which both runtimes have.
 */

export const SIGNATURE_HEADER = 'x-continuo-signature';
/** Names the secret of the signature, because an origin accepts two while they are rotated. May be absent. */
export const SECRET_ID_HEADER = 'x-continuo-secret';

/** Shorter secrets are refused. */
export const MIN_SECRET_LENGTH = 32;

const encoder = new TextEncoder();

const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'));

/** Encodes bytes as lower-case hex. */
export function toHex(bytes: Uint8Array): string {
  let hex = '';
  for (const byte of bytes) hex += HEX[byte];
  return hex;
}

export async function sha256Hex(data: string): Promise<string> {
  return toHex(new Uint8Array(await crypto.subtle.digest('SHA-256', encoder.encode(data))));
}

/** WebCrypto's CryptoKey. Not every runtime's types declare it globally. */
export type SigningKey = Awaited<ReturnType<typeof crypto.subtle.importKey>>;

export function importSigningKey(secret: string): Promise<SigningKey> {
  const algorithm = { name: 'HMAC', hash: 'SHA-256' };
  return crypto.subtle.importKey('raw', encoder.encode(secret), algorithm, false, ['sign', 'verify']);
}

/** Returns the name of a secret: 8 hex digits, which may be logged. */
export const secretId = async (secret: string): Promise<string> =>
  (await sha256Hex(`continuo secret\n${secret}`)).slice(0, 8);

export interface SignedParts {
  readonly method: string;
  /** Path with query. */
  readonly path: string;
}

export interface SignatureClaims {
  /** Unix milliseconds. */
  readonly timestamp: number;
  /** Unique per request. The verifier rejects a nonce that it has seen. */
  readonly nonce: string;
}

interface VerifiedClaims extends SignatureClaims {
  /** Hex SHA-256 of the request's body. */
  readonly bodyHash: string;
}

function message({ method, path }: SignedParts, claims: VerifiedClaims): Uint8Array<ArrayBuffer> {
  const { timestamp, nonce, bodyHash } = claims;
  const fields = [String(timestamp), nonce, method, path, bodyHash];
  // A copy, because Web Crypto requires the type Uint8Array<ArrayBuffer>, which not all typings of encode()
  // promise.
  return new Uint8Array(encoder.encode(fields.join('\n')));
}

/** Returns the value of the signature header: `v2.<timestamp>.<nonce>.<hash of the body>.<hex hmac>`. */
export async function sign(
  key: SigningKey,
  parts: SignedParts & { readonly body: string },
  claims: SignatureClaims,
): Promise<string> {
  const bodyHash = await sha256Hex(parts.body);
  const mac = await crypto.subtle.sign('HMAC', key, message(parts, { ...claims, bodyHash }));
  return `v2.${claims.timestamp}.${claims.nonce}.${bodyHash}.${toHex(new Uint8Array(mac))}`;
}

const HEADER = /^v2\.(\d{1,15})\.([A-Za-z0-9_-]{8,64})\.([0-9a-f]{64})\.([0-9a-f]{64})$/;

/** Returns whether a MAC is that of a message. */
export type MacCheck = (mac: Uint8Array, message: Uint8Array) => boolean;

/**
 * Returns the claims of a header with a valid MAC; otherwise null. The caller must check age, replay and the
 * hash of the body. So the body of an unauthenticated request need not be read.
 */
export async function verify(
  key: SigningKey | MacCheck,
  header: string | null | undefined,
  parts: SignedParts,
): Promise<VerifiedClaims | null> {
  const match = HEADER.exec(header ?? '');
  if (!match) return null;
  const [, timestamp, nonce, bodyHash, hex] = match as unknown as [string, string, string, string, string];
  const claims = { timestamp: Number(timestamp), nonce, bodyHash };
  const mac = Uint8Array.from(hex.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));
  const signed = message(parts, claims);
  const isValid =
    typeof key === 'function' ? key(mac, signed) : await crypto.subtle.verify('HMAC', key, mac, signed);
  return isValid ? claims : null;
}
