import type { WirePrompt } from '../../shared/generation.ts';
import { assemble, cutToFit, type Infill } from '../infill/infill.ts';
import { encodeAfterMark } from '../infill/text-after-mark.ts';
import { PLAIN } from '../tokenizer/tokenizer.ts';
import { boundedText, encodePrompt, type PromptContext, type TokenizedPrompt } from './prompt.ts';

/** Assembles prefix and suffix by the model's fill-in-the-middle template. Echo shows the prefix only. */
export async function infillPrompt(
  prompt: WirePrompt,
  suffix: string,
  infill: Infill,
  context: PromptContext,
): Promise<TokenizedPrompt> {
  const { request, model, budget, caller } = context;
  const { tokenizer, encoder } = model;
  const before = await encodePrompt(prompt, context, PLAIN);
  const after = await encodeAfterMark(encoder, tokenizer, boundedText(suffix, 'start', context), caller);
  const whole = { start: tokenizer.addedIds(request.addSpecialTokens), before, after };
  const parts = budget === null ? whole : cutToFit(infill, whole, budget);
  const ids = Array.from(parts.before);
  const isWholeText = typeof prompt === 'string' && ids.length === before.length;
  const text = isWholeText ? prompt : tokenizer.decode(ids, request);
  return {
    tokens: Int32Array.from(assemble(infill, parts)),
    echo: { kind: 'fixed', text, ids },
    images: [],
  };
}
