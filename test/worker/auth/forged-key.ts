import { newApiKey } from '../../../shared/api-key.ts';

/** Returns a well-formed key with this public id and the secret `fill`. */
export function keyOf(id: string, fill: number): string {
  return newApiKey((count) => new Uint8Array(count).fill(fill), id).secret;
}
