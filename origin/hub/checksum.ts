import { createHash, type Hash } from 'node:crypto';
import type { FileIdentity } from './listing.ts';

/** A hash fed with a file's content from its first byte on; its digest is compared with `identity.checksum.hex`. */
export function contentHash({ size, checksum }: FileIdentity): Hash {
  if (checksum.kind === 'sha256') return createHash('sha256');
  return createHash('sha1').update(`blob ${size}\0`);
}
