import { IMAGE_MARK } from '@continuo/shared/completion-prompt.ts';
import { ApiError } from '@continuo/shared/errors.ts';
import type { GenerationRequest, WirePrompt } from '@continuo/shared/generation.ts';
import { withoutTrailingSpace } from '@continuo/shared/score.ts';
import { refuseFullContext } from './context-budget.ts';
import { begun, encodePrompt, type PromptContext, type TokenizedPrompt } from './prompt.ts';
import type { ServedModel } from './served-model.ts';

type WireContext = NonNullable<GenerationRequest['context']>;

/** The context of a request's continuations, encoded once for all of them. */
export interface EncodedContext {
  readonly ids: Int32Array;
  /** The text that precedes each continuation when both are encoded together; null = separately. */
  readonly joint: string | null;
  /** Number of tokens that the text alone has; 0 if `ids` is only the token that begins a document. */
  readonly encoded: number;
}

/**
 * Encodes the context. Encoded jointly, its trailing white space belongs to the continuations, as in
 * lm-evaluation-harness: most tokenizers join a space to the word after it.
 * @throws ApiError 400 that names `prompt`
 */
export async function encodeContext(
  { prompt, tokenization }: WireContext,
  context: PromptContext,
): Promise<EncodedContext> {
  const { request, model } = context;
  const isJoint =
    tokenization === 'joint' &&
    typeof prompt === 'string' &&
    request.prompts.every((continuation) => typeof continuation === 'string');
  const before = isJoint ? withoutTrailingSpace(prompt) : prompt;
  const encoded = await encodePrompt(before, context, {
    addSpecialTokens: request.addSpecialTokens,
    parseSpecial: !request.plainText,
  });
  const ids = begun(encoded, context);
  refuseImages(ids, 'prompt', model);
  refuseFullContext(ids.length, model.contextLength);
  return { ids: Int32Array.from(ids), joint: isJoint ? prompt : null, encoded: encoded.length };
}

/**
 * Encodes one continuation. Encoded jointly, its tokens are those of the whole text after as many as the
 * context has alone (`_encode_pair` of lm-evaluation-harness).
 * @throws ApiError 400 that names the continuation
 */
export async function continuationPrompt(
  continuation: WirePrompt,
  { ids, joint, encoded }: EncodedContext,
  context: PromptContext,
): Promise<TokenizedPrompt> {
  const { addSpecialTokens, plainText } = context.request;
  const options = { addSpecialTokens, parseSpecial: !plainText };
  const after =
    joint !== null && typeof continuation === 'string'
      ? (await encodePrompt(joint + continuation, context, options)).slice(encoded)
      : await encodePrompt(continuation, context, { ...options, addSpecialTokens: false });
  if (after.length === 0) throw emptyContinuation(context.param);
  refuseImages(after, context.param, context.model);
  // Copied as memory, and shared with the engine thread: a request may have hundreds of continuations of a
  // long context.
  const tokens = new Int32Array(new SharedArrayBuffer(4 * (ids.length + after.length)));
  tokens.set(ids);
  tokens.set(after, ids.length);
  return {
    tokens,
    echo: { kind: 'continuation', contextTokens: ids.length },
    images: [],
  };
}

/** Without its image, the token of an image would be scored as a word. */
function refuseImages(ids: readonly number[], param: string, { images }: ServedModel): void {
  if (images === null || !ids.includes(images.tokenId)) return;
  const message = `Invalid '${param}': it has an '${IMAGE_MARK}' mark, and a request for scores has no images. Send 'parse_special': false to take the spelling of marks as text.`;
  throw new ApiError('invalid_value', message, { param });
}

const emptyContinuation = (param: string) =>
  new ApiError(
    'invalid_value',
    `Invalid '${param}': together with the prompt it has no more tokens than the prompt alone. Use the tokenization 'separate'.`,
    { param },
  );
