import { expect, test } from 'vitest';
import { PLAIN } from '../../../origin/tokenizer/tokenizer.ts';
import { NEUTRAL_SAMPLING } from '../../../shared/sampling.ts';
import { byteLevelDirectory, sentencePieceDirectory } from '../tokenizer/fixtures.ts';
import { prepare, servedModel } from './served-models.ts';

const badTokensOf = async (badWords: string[], model: ReturnType<typeof servedModel>) => {
  const { submission } = await prepare({ sampling: { ...NEUTRAL_SAMPLING, badWords } }, model);
  return submission.sampling.badTokens;
};

test.each([
  ['byte-level', byteLevelDirectory(), ['hello']],
  ['SentencePiece', sentencePieceDirectory(), ['h', 'el', 'lo']],
] as const)(
  'a bad word of a %s vocabulary is forbidden within a word and after a space',
  async (_, directory, within) => {
    const model = servedModel(directory);
    const spelled = (ids: readonly number[]) => ids.map((id) => model.tokenizer.spelling(id));
    const [first = [], second = []] = (await badTokensOf(['hello'], model)) ?? [];
    expect(spelled(first)).toEqual(within);
    // As the word comes in a text.
    const afterSpace = spelled(model.tokenizer.encode('h hello', PLAIN)).slice(-second.length);
    expect(spelled(second)).toEqual(afterSpace);
    expect(await badTokensOf([' hello'], model)).toEqual([first, second]);
  },
);

test('a bad word of white space is forbidden as it is, and one without text is nothing', async () => {
  const model = servedModel(byteLevelDirectory());
  const { tokenizer } = model;
  expect(await badTokensOf(['\n', ''], model)).toEqual([
    tokenizer.encode('\n', PLAIN),
    tokenizer.encode(' \n', PLAIN),
  ]);
});
