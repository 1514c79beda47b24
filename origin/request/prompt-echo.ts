import type { Alternative, EventOf, TokenLogprob } from '../../shared/generation.ts';
import type { Tokenizer } from '../tokenizer/tokenizer.ts';

/**
 * A prompt is told as it was written, and its tokens alone do not tell that: SentencePiece and some others put a space
 * before a text, tokenizers rewrite characters, and special tokens are hidden, but those that stand in the text were sent.
 */
export interface Written {
  /** All of it; null for what its tokens tell: ids, mixtures, what was cut, and where special tokens show anyway. */
  readonly text: string | null;
  /** Tokens that the tokenizer put before those of the text. */
  readonly added: number;
  /** Spaces it begins with by itself; Infinity when no other can come before them. */
  readonly spaces: number;
}

export const TOLD_BY_TOKENS: Written = { text: null, added: 0, spaces: Infinity };

/** Spaces at the start of a text; U+2581 is how the pipeline writes one. */
export const spacesBefore = (text: string): number => /^[ \u2581]*/.exec(text)?.[0].length ?? 0;

/** How many of a text's ids the tokenizer added: none where the text begins with BOS itself. */
export function addedBefore(text: string, ids: readonly number[], tokenizer: Tokenizer): number {
  const { prefixIds, bosId } = tokenizer;
  const isPrefixed = prefixIds.every((id, index) => ids[index] === id);
  const isSpelled = bosId !== null && text.startsWith(tokenizer.spelling(bosId));
  return isPrefixed && !isSpelled ? prefixIds.length : 0;
}

/** The `prompt` event of the engine, which knows tokens alone. */
export function asWritten(event: EventOf<'prompt'>, { text, added, spaces }: Written): EventOf<'prompt'> {
  const told = spacesBefore(event.text) <= spaces ? event : withoutAddedSpace(event);
  if (text === null) return told;
  if (told.tokens === undefined) return { ...told, text: text.toWellFormed() };
  // Offsets are those of the tokens' own text.
  const tokens = told.tokens.map((token, index) => (index < added ? token : shown(token)));
  return { ...told, tokens, text: textOf(tokens) };
}

const shown = ({ hidden: _, ...token }: TokenLogprob): TokenLogprob => token;

const textOf = (tokens: readonly TokenLogprob[]): string =>
  Buffer.from(tokens.map(({ bytes, hidden }) => (hidden ? '' : bytes)).join(''), 'latin1').toString();

const withoutSpace = (text: string): string => (text.startsWith(' ') ? text.slice(1) : text);

function withoutAddedSpace(event: EventOf<'prompt'>): EventOf<'prompt'> {
  const text = withoutSpace(event.text);
  return event.tokens ? { ...event, text, tokens: firstWithoutSpace(event.tokens) } : { ...event, text };
}

/** What might have stood in the first token's place would have been read without the space, too. */
function firstWithoutSpace(tokens: readonly TokenLogprob[]): TokenLogprob[] {
  const first = tokens.findIndex(({ hidden, bytes }) => !hidden && bytes !== '');
  return tokens.map((token, index) => {
    if (index !== first) return token;
    const top = token.top?.map(([id, bytes, logprob]): Alternative => [id, withoutSpace(bytes), logprob]);
    return { ...token, bytes: withoutSpace(token.bytes), top: top ?? null };
  });
}
