import type { EventOf, GenerationRequest } from '@continuo/shared/generation.ts';
import { logprobBytes, PromptLogprobs } from '../engine/kv/prompt-logprobs.ts';
import type { PromptResult, SubmittedPrompt } from '../engine/messages.ts';
import { wireBytes, wireTokenLogprob } from '../engine/sequences/token-logprob.ts';
import { type TokenBytes, textOf } from '../tokenizer/token-bytes.ts';

/** Returns the `prompt` event of a prompt from what the engine has computed of it. */
export function promptEvent(
  { prompt, scores }: PromptResult,
  { tokens, echoFrom = 0, logprobsFrom = 0 }: SubmittedPrompt,
  request: Pick<GenerationRequest, 'skipSpecialTokens' | 'promptTopLogprobs'>,
  tokenBytes: TokenBytes,
): EventOf<'prompt'> {
  const { skipSpecialTokens, promptTopLogprobs } = request;
  const ids = [...tokens.subarray(echoFrom)];
  const text = textOf(tokenBytes, ids, skipSpecialTokens);
  if (scores === undefined) return { type: 'prompt', prompt, text, ids };
  const { bytes, top, first, rows } = scores;
  const results = new PromptLogprobs(bytes.length / logprobBytes(top), top, bytes.buffer, first);
  // The same tokens are likely in many places.
  const written = new Map<number, string>();
  const bytesOf = (id: number): string => {
    if (!written.has(id)) written.set(id, wireBytes(tokenBytes, id));
    return written.get(id)!;
  };
  const logprobs = ids.map((id, index) => {
    const at = echoFrom + index;
    const hidden = skipSpecialTokens && tokenBytes.special[id] === 1;
    if (at <= logprobsFrom) return wireTokenLogprob(bytesOf, id, null, hidden);
    const row = rows.at(at - tokens.length);
    return wireTokenLogprob(
      bytesOf,
      id,
      { ...results.get(at, promptTopLogprobs ?? 0), ...(row && { row }) },
      hidden,
    );
  });
  return { type: 'prompt', prompt, text, ids, logprobs };
}
