import type { TokenizerJson } from './tokenizer-files.ts';

/**
 * Returns the tokenizer without its control tokens, so that text that spells one stays text. Added tokens that are neither
 * special nor in `markers`, such as runs of spaces, are part of normal text and stay.
 *
 * Control tokens are also removed from the model, because merges (BPE) or the best segmentation (Unigram) could produce them.
 */
export function withoutControlTokens(tokenizer: TokenizerJson, markers: ReadonlySet<string>): TokenizerJson {
  const added = tokenizer.added_tokens ?? [];
  const isControl = (token: (typeof added)[number]) => token.special === true || markers.has(token.content);
  const control = new Set(added.filter(isControl).map((token) => token.content));
  const { vocab, merges } = tokenizer.model;
  const merged = (merge: string | [string, string]) =>
    typeof merge === 'string' ? merge.replace(' ', '') : merge.join('');
  return {
    ...tokenizer,
    added_tokens: added.filter((token) => !isControl(token)),
    model: {
      ...tokenizer.model,
      vocab: Array.isArray(vocab)
        ? vocab.map(([text, score]): [string, number] => [
            control.has(text) ? UNREACHABLE + text : text,
            score,
          ])
        : Object.fromEntries(Object.entries(vocab).filter(([text]) => !control.has(text))),
      ...(merges ? { merges: merges.filter((merge) => !control.has(merged(merge))) } : {}),
    },
  };
}

/** Half a surrogate pair, which no well-formed text contains. */
const UNREACHABLE = '\ud800';
