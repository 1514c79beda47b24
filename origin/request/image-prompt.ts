import { ApiError } from '@continuo/shared/errors.ts';
import type { WirePrompt } from '@continuo/shared/generation.ts';
import { expandImageTokens, type ImageInput, imagePositions } from '../images/prompt-images.ts';
import { begun, encodePrompt, type PromptContext, type TokenizedPrompt } from './prompt.ts';

/** Encodes a prompt with images: each image token is repeated for its image's positions. Never cut. */
export async function imagePrompt(
  prompt: WirePrompt,
  input: ImageInput,
  context: PromptContext,
): Promise<TokenizedPrompt> {
  const { request, model, budget } = context;
  const encoded = await encodePrompt(
    prompt,
    { ...context, budget: null },
    { addSpecialTokens: request.addSpecialTokens, parseSpecial: !request.plainText },
  );
  const ids = begun(encoded, context);
  const images = imagePositions(ids, input);
  // A prompt with more marks than images is refused later. Expanding it here could take gigabytes.
  const hasTooMany = images.length > (request.images ?? []).length;
  const tokens = hasTooMany ? ids : expandImageTokens(ids, input);
  if (budget !== null && tokens.length > budget) throw cutsImages(tokens.length, budget);
  const text = typeof prompt === 'string' ? prompt : model.tokenizer.decode(ids, request);
  return { tokens: Int32Array.from(tokens), echo: { kind: 'fixed', text, ids }, images };
}

const cutsImages = (tokens: number, budget: number) =>
  new ApiError(
    'conflicting_parameters',
    `Conflicting parameters: a prompt with 'images' cannot be cut; it has ${tokens} tokens, ${budget} are to be kept.`,
    { param: 'truncate_prompt_tokens' },
  );
