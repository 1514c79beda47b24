import { ApiError } from '../shared/errors.ts';
import {
  type DetokenizeResult,
  detokenizeRequest,
  type TokenizeResult,
  type TokenizerInfo,
  tokenizeRequest,
} from '../shared/tokenization.ts';
import { parseBody } from './body.ts';
import { type Exchange, type ServerContext, sendJson } from './exchange.ts';
import { checkModel } from './generate.ts';

/** Characters of one /tokenize request: the answer is written in one go, and others wait for it. */
const LONGEST_TEXT = 2 ** 20;

/** POST /tokenize: special tokens in the text are read as such, as in a prompt. */
export async function handleTokenize(
  { body, response }: Exchange,
  { service }: ServerContext,
): Promise<void> {
  const { model: name, prompt, addSpecialTokens } = parseBody(body, tokenizeRequest);
  const { model } = service.loaded();
  checkModel(name, model);
  if (prompt.length > LONGEST_TEXT) {
    const message = `Invalid 'prompt': string too long. Expected at most ${LONGEST_TEXT} characters.`;
    throw new ApiError('string_above_max_length', message, { param: 'prompt' });
  }
  const tokens = Array.from(await model.encoder.encode(prompt, { addSpecialTokens, parseSpecial: true }));
  const tokenStrings = tokens.map((id) => model.tokenizer.spelling(id));
  sendJson(response, 200, { tokens, tokenStrings } satisfies TokenizeResult);
}

/** POST /detokenize: special tokens appear as their literal text. */
export function handleDetokenize({ body, response }: Exchange, { service }: ServerContext): void {
  const { model: name, tokens } = parseBody(body, detokenizeRequest);
  const { model } = service.loaded();
  checkModel(name, model);
  const outside = tokens.findIndex((id) => id >= model.vocabularySize);
  if (outside >= 0) {
    throw new ApiError(
      'invalid_value',
      `Invalid 'tokens[${outside}]': the token id is outside the vocabulary of this model (0 to ${model.vocabularySize - 1}).`,
      { param: `tokens[${outside}]` },
    );
  }
  const text = model.tokenizer.decode(tokens, { skipSpecialTokens: false });
  sendJson(response, 200, { text } satisfies DetokenizeResult);
}

/** GET /tokenizer_info?model=… */
export function handleTokenizerInfo({ query, response }: Exchange, { service }: ServerContext): void {
  const { model } = service.loaded();
  checkModel(query.get('model') ?? 'default', model);
  const { description, bosId, prefixIds } = model.tokenizer;
  sendJson(response, 200, {
    model: model.id,
    contextLength: model.contextLength,
    vocabularySize: model.vocabularySize,
    bosToken: description.bos_token ?? null,
    eosToken: description.eos_token ?? null,
    padToken: description.pad_token ?? null,
    unkToken: description.unk_token ?? null,
    addBosToken: bosId !== null && prefixIds.includes(bosId),
    chatTemplate: typeof description.chat_template === 'string' ? description.chat_template : null,
  } satisfies TokenizerInfo);
}
