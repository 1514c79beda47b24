import type { Encoder } from '../tokenizer/encoder.ts';
import { bytesOf } from '../tokenizer/token-bytes.ts';
import type { Tokenizer } from '../tokenizer/tokenizer.ts';
import type { Caller } from '../turns.ts';

/** A character that no text starts with by chance and that merges with nothing. */
const GUARD = '\u263a';

const PLAIN = { addSpecialTokens: false, parseSpecial: false };

/**
 * Tokens of the text after the gap. It continues a line, so the space that SentencePiece vocabularies put before a
 * text must not appear: it is given to a guard character, whose tokens are dropped again.
 */
export async function encodeAfter(
  encoder: Encoder,
  tokenizer: Tokenizer,
  text: string,
  caller: Caller,
): Promise<ArrayLike<number>> {
  if (!tokenizer.addsLeadingSpace || text === '') return encoder.encode(text, PLAIN, caller);
  const ids = Array.from(await encoder.encode(GUARD + text, PLAIN, caller));
  const guard = new TextEncoder().encode(` ${GUARD}`).length;
  let dropped = 0;
  let bytes = 0;
  while (dropped < ids.length && bytes < guard)
    bytes += bytesOf(tokenizer.tokenBytes, ids[dropped++]!).length;
  return bytes === guard ? ids.slice(dropped) : encoder.encode(text, PLAIN, caller);
}
