import type { WirePrompt } from '@continuo/shared/generation.ts';

/** Average characters per token. Settlement replaces the estimate by the true count. */
const CHARACTERS_PER_TOKEN = 4;

/** Estimates the tokens of a prompt without a tokenizer. */
export function estimateTokens(prompt: WirePrompt): number {
  const parts = typeof prompt === 'string' ? [prompt] : prompt;
  return parts.reduce<number>(
    (sum, part) => sum + (typeof part === 'string' ? Math.ceil(part.length / CHARACTERS_PER_TOKEN) : 1),
    0,
  );
}
