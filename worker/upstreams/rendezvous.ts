import { fnv1a } from '@continuo/shared/fnv1a.ts';
import type { WirePrompt } from '@continuo/shared/generation.ts';

/** Rendezvous hashing: equal keys prefer the same upstream, and only the keys of a removed upstream move. */

/** Characters, or token ids, of the prompt that are hashed; enough to distinguish system prompts. */
const PREFIX_CHARACTERS = 256;
const PREFIX_TOKENS = 64;

/** FNV-1a with the finaliser of MurmurHash3, which spreads keys that differ only at their ends. */
function hash(text: string): number {
  let value = fnv1a(text);
  value = Math.imul(value ^ (value >>> 16), 0x85ebca6b);
  value = Math.imul(value ^ (value >>> 13), 0xc2b2ae35);
  return (value ^ (value >>> 16)) >>> 0;
}

/** Returns a key that requests with a common cached prefix share. */
export function affinityKey(tenantId: string, prompt: WirePrompt | null): string {
  const prefix =
    typeof prompt === 'string'
      ? prompt.slice(0, PREFIX_CHARACTERS)
      : JSON.stringify((prompt ?? []).slice(0, PREFIX_TOKENS)).slice(0, PREFIX_CHARACTERS);
  return `${tenantId}\n${prefix}`;
}

/** Returns the names, most preferred first; the order depends only on the key and the names. */
export function rank(names: readonly string[], key: string): string[] {
  return names
    .map((name) => ({ name, weight: hash(`${name}\n${key}`) }))
    .toSorted((a, b) => b.weight - a.weight || (a.name < b.name ? -1 : 1))
    .map(({ name }) => name);
}
