import type { TokenLogprob, TopLogprob } from '@continuo/shared/generation.ts';
import type { TokenLogprobs } from '../../sampling/logprobs.ts';
import type { TokenBytes } from '../../tokenizer/token-bytes.ts';

/**
 * Returns a token's bytes in the wire form: one code unit 0..255 per byte. Three times as fast as with spread
 * arguments.
 * @param healed bytes of the prompt; left out if the token begins with them
 */
export function wireBytes({ bytes, offsets }: TokenBytes, id: number, healed?: Uint8Array): string {
  let text = '';
  for (let at = offsets[id]!; at < offsets[id + 1]!; at++) text += String.fromCharCode(bytes[at]!);
  const prefix = healed ? String.fromCharCode(...healed) : '';
  return text.startsWith(prefix) ? text.slice(prefix.length) : text;
}

/**
 * Returns the wire form of one token's raw logprob, for prompt tokens and generated tokens.
 * @param bytesOf returns the bytes of a token as `wireBytes` does
 * @param logprobs null for the first prompt token, which has no logits
 * @param hidden the token adds no text: a special token, or one that ended the sequence
 */
export function wireTokenLogprob(
  bytesOf: (id: number) => string,
  id: number,
  logprobs: TokenLogprobs | null,
  hidden: boolean,
): TokenLogprob {
  const topLogprobs = logprobs?.top.map(
    ([listed, logprob]): TopLogprob => [listed, bytesOf(listed), logprob],
  );
  const { rank, row } = logprobs ?? {};
  const entry: TokenLogprob = {
    id,
    bytes: bytesOf(id),
    logprob: logprobs?.logprob ?? null,
    topLogprobs: topLogprobs ?? null,
    ...(row && { row }),
  };
  const isListed = topLogprobs?.some(([listed]) => listed === id) ?? true;
  return { ...entry, ...(hidden && { hidden }), ...(rank !== undefined && !isListed && { rank }) };
}
