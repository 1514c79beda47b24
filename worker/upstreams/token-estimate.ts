import type { WirePrompt } from '../../shared/generation.ts';

/** Rough average; the real count replaces the estimate as soon as it is known. */
const CHARACTERS_PER_TOKEN = 4;

export function estimateTokens(prompt: WirePrompt): number {
  const parts = typeof prompt === 'string' ? [prompt] : prompt;
  return parts.reduce<number>(
    (sum, part) => sum + (typeof part === 'string' ? Math.ceil(part.length / CHARACTERS_PER_TOKEN) : 1),
    0,
  );
}
