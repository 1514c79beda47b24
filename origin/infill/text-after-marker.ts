import type { LockCaller } from '../process/fair-mutex.ts';
import type { Encoder } from '../tokenizer/encoder.ts';
import { afterGuard, GUARD } from '../tokenizer/guard.ts';
import { PLAIN, type Tokenizer } from '../tokenizer/tokenizer.ts';

/** Returns the tokens of a text that follows a marker. It may continue a line, so the tokenizer must not add a space. */
export async function encodeAfterMarker(
  encoder: Encoder,
  tokenizer: Tokenizer,
  text: string,
  caller: LockCaller,
): Promise<ArrayLike<number>> {
  if (!tokenizer.addsLeadingSpace || text === '') return encoder.encode(text, PLAIN, caller);
  const guarded = await encoder.encode(GUARD + text, PLAIN, caller);
  return afterGuard(guarded, tokenizer.tokenBytes) ?? encoder.encode(text, PLAIN, caller);
}
