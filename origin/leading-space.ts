import type { Alternative, EventOf, TokenLogprob } from '../shared/generation.ts';

/** SentencePiece and some others put a space before a text; a prompt is told as it was written, without it. */

/** Spaces at the start of a text; U+2581 is how the pipeline writes one. */
export const spacesBefore = (text: string): number => /^[ \u2581]*/.exec(text)?.[0].length ?? 0;

const withoutSpace = (text: string): string => (text.startsWith(' ') ? text.slice(1) : text);

/** @param written spaces that the prompt begins with by itself */
export function asWritten(event: EventOf<'prompt'>, written: number): EventOf<'prompt'> {
  if (spacesBefore(event.text) <= written) return event;
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
