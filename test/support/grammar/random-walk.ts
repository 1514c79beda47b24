import type { Constraint } from '../../../origin/grammar/runtime/constraint.ts';
import { bytesOf, type TokenBytes } from '../../../origin/tokenizer/token-bytes.ts';

export function allowedTokens(mask: Uint32Array): number[] {
  const ids: number[] = [];
  for (let word = 0; word < mask.length; word++) {
    for (let bits = mask[word]!; bits !== 0; bits &= bits - 1)
      ids.push(32 * word + 31 - Math.clz32(bits & -bits));
  }
  return ids;
}

export interface WalkOptions {
  readonly tokens: TokenBytes;
  readonly random: () => number;
  /** Number of tokens after which the walk prefers tokens that close strings and brackets. */
  readonly patience: number;
  readonly limit: number;
  /**
   * Characters that bring a text nearer to its end where nothing can be closed, such as those of a valid
   * text.
   */
  readonly characters?: string;
}

/** Generates a text of random allowed tokens. Returns null if it does not end within the limit. */
export function randomText(constraint: Constraint, options: WalkOptions): string | null {
  const parts: Uint8Array[] = [];
  for (let step = 0; step < options.limit; step++) {
    const allowed = allowedTokens(constraint.mask());
    if (allowed.length === 0 && !constraint.accepting)
      throw new Error('Neither a token nor the end is allowed');
    const late = step >= options.patience;
    if (constraint.accepting && (allowed.length === 0 || late || options.random() < 0.3)) {
      return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(Buffer.concat(parts));
    }
    const token = late ? closing(allowed, options) : allowed[Math.floor(options.random() * allowed.length)]!;
    constraint.accept(token);
    parts.push(bytesOf(options.tokens, token));
  }
  return null;
}

/** Prefers a token that closes a string, then a bracket, then one of the given characters; not always. */
function closing(allowed: readonly number[], { tokens, random, characters = '' }: WalkOptions): number {
  const pick = (from: readonly number[]): number => from[Math.floor(random() * from.length)]!;
  const preferences = [['"', 0.9] as const, [']}', 0.5] as const, [characters, 0.5] as const];
  for (const [chars, chance] of preferences) {
    const pool = allowed.filter((id) => chars.includes(String.fromCharCode(bytesOf(tokens, id)[0] ?? 0)));
    if (pool.length > 0 && random() < chance) return pick(pool);
  }
  return pick(allowed);
}
