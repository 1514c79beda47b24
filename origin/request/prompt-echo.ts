import { bytesOfUnits, utf8Of } from '@continuo/shared/binary-text.ts';
import type { EventOf, GenerationRequest, TokenLogprob, TopLogprob } from '@continuo/shared/generation.ts';
import type { Tokenizer } from '../tokenizer/tokenizer.ts';

/**
 * How echo reports a prompt.
 *
 * `fixed`: the text and ids that the client sent, because the model's tokens differ (an infill template,
 * images).
 *
 * `tokens`: the engine's tokens, corrected to the text as written. Decoded tokens can differ from it:
 * SentencePiece puts a space before a text, tokenizers rewrite characters, and special tokens in the text are
 * hidden.
 *
 * `continuation`: the engine's tokens after the context. The engine reports no others.
 */
export type PromptEcho =
  | { readonly kind: 'fixed'; readonly text: string; readonly ids: readonly number[] }
  | {
      readonly kind: 'tokens';
      /** The whole text as sent; null for ids, mixtures, cut prompts or shown special tokens. */
      readonly text: string | null;
      /** Number of tokens that the tokenizer put before those of the text. */
      readonly addedTokens: number;
      /** Spaces that the text itself begins with; Infinity if the tokenizer adds none. */
      readonly leadingSpaces: number;
    }
  | {
      readonly kind: 'continuation';
      /** Number of tokens before the continuation. */
      readonly contextTokens: number;
    };

/** Reports exactly what the tokens say. */
export const ECHO_TOKENS: PromptEcho = {
  kind: 'tokens',
  text: null,
  addedTokens: 0,
  leadingSpaces: Number.POSITIVE_INFINITY,
};

/** Counts the spaces at the start of a text; U+2581 is SentencePiece's form of a space. */
export const leadingSpaces = (text: string): number => /^[ \u2581]*/.exec(text)?.[0].length ?? 0;

/** Counts the ids that the tokenizer added before a text; none if it begins with BOS, unless `always`. */
export function addedTokenCount(
  text: string,
  ids: readonly number[],
  tokenizer: Tokenizer,
  { addSpecialTokens: add, plainText = false }: Pick<GenerationRequest, 'addSpecialTokens' | 'plainText'>,
): number {
  const { bosId } = tokenizer;
  const added = tokenizer.addedIds(add);
  if (add === 'always') return added.length;
  const isPrefixed = added.every((id, index) => ids[index] === id);
  const isSpelled = !plainText && bosId !== null && text.startsWith(tokenizer.spelling(bosId));
  return isPrefixed && !isSpelled ? added.length : 0;
}

/** Corrects the engine's `prompt` event to the prompt as the client wrote it. */
export function echoEvent(event: EventOf<'prompt'>, echo: PromptEcho): EventOf<'prompt'> {
  if (echo.kind !== 'tokens') return event;
  const { text, addedTokens } = echo;
  const corrected = leadingSpaces(event.text) <= echo.leadingSpaces ? event : withoutAddedSpace(event);
  if (text === null) return corrected;
  if (corrected.logprobs === undefined) return { ...corrected, text: text.toWellFormed() };
  // text_offset counts in the text of the tokens, so the text must be theirs.
  const tokens = corrected.logprobs.map((token, index) => (index < addedTokens ? token : visible(token)));
  return { ...corrected, logprobs: tokens, text: textOf(tokens) };
}

const visible = ({ hidden: _, ...token }: TokenLogprob): TokenLogprob => token;

const textOf = (tokens: readonly TokenLogprob[]): string =>
  utf8Of(bytesOfUnits(tokens.map(({ bytes, hidden }) => (hidden ? '' : bytes)).join('')));

const withoutSpace = (text: string): string => (text.startsWith(' ') ? text.slice(1) : text);

function withoutAddedSpace(event: EventOf<'prompt'>): EventOf<'prompt'> {
  const text = withoutSpace(event.text);
  return event.logprobs
    ? { ...event, text, logprobs: firstWithoutSpace(event.logprobs) }
    : { ...event, text };
}

/** Removes the space from the first visible token and from its top logprobs. */
function firstWithoutSpace(tokens: readonly TokenLogprob[]): TokenLogprob[] {
  const first = tokens.findIndex(({ hidden, bytes }) => !hidden && bytes !== '');
  return tokens.map((token, index) => {
    if (index !== first) return token;
    const topLogprobs = token.topLogprobs?.map(
      ([id, bytes, logprob]): TopLogprob => [id, withoutSpace(bytes), logprob],
    );
    return { ...token, bytes: withoutSpace(token.bytes), topLogprobs: topLogprobs ?? null };
  });
}
