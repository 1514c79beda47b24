import type { TokenHistory } from '../token-history.ts';
import type { SamplerVocabulary } from '../vocabulary.ts';
import type { LogitProcessorFactory } from './processor.ts';

/**
 * Forbids the token that would complete a bad word: the last one of the word's tokenisation, with and without a space
 * before it, while the tokens before that one end the history (as vLLM's bad_words).
 */
export const badWords: LogitProcessorFactory = ({ badWords }, vocabulary, workspace) => {
  const sequences = workspace.badWords.get(badWords) ?? sequencesOf(badWords, vocabulary);
  if (sequences.length === 0) return null;
  workspace.badWords.set(badWords, sequences);
  return {
    apply(scores, history) {
      for (const tokens of sequences) {
        if (endsWithAllButLast(history, tokens)) scores.set(tokens.at(-1)!, Number.NEGATIVE_INFINITY);
      }
    },
  };
};

const sequencesOf = (words: readonly string[], vocabulary: SamplerVocabulary) =>
  words
    .map((word) => word.trimStart())
    .filter((word) => word !== '')
    .flatMap((word) => [vocabulary.encode(word), vocabulary.encode(` ${word}`)])
    .filter((tokens) => tokens.length > 0);

function endsWithAllButLast(history: TokenHistory, tokens: readonly number[]): boolean {
  const start = history.length - (tokens.length - 1);
  if (start < 0) return false;
  for (let i = 0; i < tokens.length - 1; i++) if (history.tokens[start + i] !== tokens[i]) return false;
  return true;
}
