import * as z from 'zod';
import type { Alternative, TokenLogprob } from '../../shared/generation.ts';

/** One chunk of an OpenAI-compatible server's completion stream, as far as it is read. */

const logprobs = z.object({
  tokens: z.array(z.string()),
  token_logprobs: z.array(z.number().nullable()),
  top_logprobs: z.array(z.record(z.string(), z.number()).nullable()).nullish(),
});

const choice = z.object({
  index: z.int().min(0).default(0),
  text: z.string().nullish(),
  logprobs: logprobs.nullish(),
  finish_reason: z.string().nullish(),
  stop_reason: z.union([z.string(), z.int()]).nullish(),
});
export type ChunkChoice = z.infer<typeof choice>;

export const chunk = z.object({
  choices: z.array(choice).default([]),
  usage: z
    .object({
      prompt_tokens: z.int().min(0),
      completion_tokens: z.int().min(0).default(0),
      prompt_tokens_details: z.object({ cached_tokens: z.int().min(0).nullish() }).nullish(),
    })
    .nullish(),
});

const encoder = new TextEncoder();

/** A token's bytes from the name servers give it: its text, or `bytes:\xe2\x82` where it is part of a character. */
function bytesOf(name: string): string {
  if (name.startsWith('bytes:')) {
    return name
      .slice('bytes:'.length)
      .replaceAll(/\\x([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  }
  return Array.from(encoder.encode(name), (byte) => String.fromCharCode(byte)).join('');
}

/** Such servers name tokens and do not number them; equal names get equal numbers within one answer. */
export class TokenNumbers {
  readonly #numbers = new Map<string, number>();

  of(name: string): number {
    const number = this.#numbers.get(name) ?? this.#numbers.size;
    this.#numbers.set(name, number);
    return number;
  }
}

export function tokensOf({ logprobs: found }: ChunkChoice, numbers: TokenNumbers): TokenLogprob[] {
  if (!found) return [];
  return found.tokens.map((name, index) => {
    const alternatives = Object.entries(found.top_logprobs?.[index] ?? {})
      .toSorted(([, a], [, b]) => b - a)
      .map(([text, logprob]): Alternative => [numbers.of(text), bytesOf(text), logprob]);
    return {
      id: numbers.of(name),
      bytes: bytesOf(name),
      logprob: found.token_logprobs[index] ?? null,
      top: alternatives,
    };
  });
}
