import type { WirePrompt } from '@continuo/shared/generation.ts';
import { imagePositions } from '../images/prompt-images.ts';
import { encodePrompt, type PromptContext, type TokenizedPrompt } from './prompt.ts';
import { addedTokenCount, ECHO_TOKENS, leadingSpaces, type PromptEcho } from './prompt-echo.ts';

/** Encodes a prompt that the model continues. If it exceeds the budget, its end is kept. */
export async function plainPrompt(prompt: WirePrompt, context: PromptContext): Promise<TokenizedPrompt> {
  const { request, model, budget } = context;
  const ids = await encodePrompt(prompt, context, {
    addSpecialTokens: request.addSpecialTokens,
    parseSpecial: true,
  });
  const kept = budget === null ? ids : ids.slice(Math.max(0, ids.length - budget));
  const tokens = Int32Array.from(kept);
  const isCut = kept.length < ids.length;
  return {
    tokens,
    echo: isCut ? ECHO_TOKENS : echoOf(prompt, ids, context),
    images: model.images ? imagePositions(tokens, model.images) : [],
    isCut,
  };
}

function echoOf(prompt: WirePrompt, ids: readonly number[], { request, model }: PromptContext): PromptEcho {
  const { tokenizer } = model;
  const isText = typeof prompt === 'string';
  const first = isText ? prompt : prompt[0];
  const spaces = typeof first === 'string' ? leadingSpaces(first) : 0;
  return {
    kind: 'tokens',
    text: isText && request.skipSpecialTokens ? prompt : null,
    addedTokens: isText ? addedTokenCount(prompt, ids, tokenizer, request.addSpecialTokens) : 0,
    leadingSpaces: tokenizer.addsLeadingSpace ? spaces : Number.POSITIVE_INFINITY,
  };
}
