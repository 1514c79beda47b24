import type { TokenLogprob, TopLogprob } from '@continuo/shared/generation.ts';
import type { TokenLogprobs } from '../sampling/logprobs.ts';
import type { TokenBytes } from '../tokenizer/token-bytes.ts';

/** A token's bytes in the wire form: one code unit 0..255 per byte. Three times as fast as with spread arguments. */
function wireBytes({ bytes, offsets }: TokenBytes, id: number): string {
  let text = '';
  for (let at = offsets[id]!; at < offsets[id + 1]!; at++) text += String.fromCharCode(bytes[at]!);
  return text;
}

/**
 * Returns the wire form of one token's raw logprob, for prompt tokens and generated tokens.
 * @param logprobs null for the first prompt token, which has no logits
 * @param hidden the token adds no text: a special token, or one that ended the sequence
 * @param healed bytes of the prompt that the token begins with; left out, also of the most likely tokens that begin with them
 */
export function wireTokenLogprob(
  tokenBytes: TokenBytes,
  id: number,
  logprobs: TokenLogprobs | null,
  hidden: boolean,
  healed: Uint8Array = new Uint8Array(0),
): TokenLogprob {
  const prefix = String.fromCharCode(...healed);
  const ownBytes = (other: number): string => {
    const bytes = wireBytes(tokenBytes, other);
    return bytes.startsWith(prefix) ? bytes.slice(prefix.length) : bytes;
  };
  const topLogprobs = logprobs?.top.map(([other, logprob]): TopLogprob => [other, ownBytes(other), logprob]);
  const { rank, row } = logprobs ?? {};
  const entry: TokenLogprob = {
    id,
    bytes: ownBytes(id),
    logprob: logprobs?.logprob ?? null,
    topLogprobs: topLogprobs ?? null,
    ...(row && { row }),
  };
  const isListed = topLogprobs?.some(([other]) => other === id) ?? true;
  return { ...entry, ...(hidden && { hidden }), ...(rank !== undefined && !isListed && { rank }) };
}
