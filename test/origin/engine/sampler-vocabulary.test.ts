import { expect, it } from 'vitest';
import { samplerVocabulary } from '../../../origin/engine/sampler-vocabulary.ts';
import { Tokenizer } from '../../../origin/tokenizer/tokenizer.ts';
import { byteLevelDirectory, sentencePieceDirectory } from '../tokenizer/fixtures.ts';

it.each([
  ['byte-level', byteLevelDirectory(), ['hello']],
  ['SentencePiece', sentencePieceDirectory(), ['h', 'el', 'lo']],
] as const)(
  'a text that continues another one has no space before it in a %s vocabulary',
  (_, directory, expected) => {
    const tokenizer = Tokenizer.fromDirectory(directory);
    const ids = samplerVocabulary(directory, tokenizer.tokenBytes).encode('hello');
    expect(ids.map((id) => tokenizer.spelling(id))).toEqual(expected);
  },
);
