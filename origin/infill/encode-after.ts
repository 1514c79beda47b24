import type { Caller } from '../fair-mutex.ts';
import type { Encoder } from '../tokenizer/encoder.ts';
import { behindGuard, GUARD } from '../tokenizer/guard.ts';
import { PLAIN, type Tokenizer } from '../tokenizer/tokenizer.ts';

/** Tokens of the text after the gap. It continues a line, so no space may appear before it. */
export async function encodeAfter(
  encoder: Encoder,
  tokenizer: Tokenizer,
  text: string,
  caller: Caller,
): Promise<ArrayLike<number>> {
  if (!tokenizer.addsLeadingSpace || text === '') return encoder.encode(text, PLAIN, caller);
  const guarded = await encoder.encode(GUARD + text, PLAIN, caller);
  return behindGuard(guarded, tokenizer.tokenBytes) ?? encoder.encode(text, PLAIN, caller);
}
