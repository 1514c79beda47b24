import { expect, test } from 'vitest';
import { PLAIN } from '../../../origin/tokenizer/tokenizer.ts';
import { NEUTRAL_SAMPLING } from '../../../shared/sampling.ts';
import { byteLevelDirectory, sentencePieceDirectory } from '../tokenizer/fixtures.ts';
import { prepare, servedModel } from './served-models.ts';

/** Vocabularies with the tokens of "hello" within a word. */
const HELLO = [
  ['byte-level', byteLevelDirectory(), ['hello']],
  ['SentencePiece', sentencePieceDirectory(), ['h', 'el', 'lo']],
] as const;

const badTokensOf = async (badWords: string[], model: ReturnType<typeof servedModel>) => {
  const { submission } = await prepare({ sampling: { ...NEUTRAL_SAMPLING, badWords } }, model);
  return submission.sampling.badTokens;
};

test.each(HELLO)(
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

const breakersOf = async (texts: string[], model: ReturnType<typeof servedModel>, dryMultiplier = 1) => {
  const sampling = { ...NEUTRAL_SAMPLING, dryMultiplier, drySequenceBreakers: texts };
  const { submission } = await prepare({ sampling }, model);
  return submission.sampling.dryBreakers ?? [];
};

test.each(HELLO)(
  "what follows a split of DRY's breaker is encoded without a space in a %s vocabulary",
  async (_, directory, expected) => {
    const model = servedModel(directory);
    const [breaker] = await breakersOf(['é hello', 'é hello'], model);
    expect(breaker?.bytes).toEqual(new TextEncoder().encode('é hello'));
    // Not within a character, and not after the last byte.
    expect(breaker?.tokens.map((ids) => ids === null)).toEqual([false, true, ...Array(6).fill(false)]);
    expect(breaker?.tokens[3]?.map((id) => model.tokenizer.spelling(id))).toEqual(expected);
  },
);

test("the usual breakers of DRY, and those of requests without DRY, need no tokenizer's work", async () => {
  const model = servedModel(byteLevelDirectory());
  const idle = {
    ...model,
    encoder: { ...model.encoder, encode: () => Promise.reject(new Error('encodes')) },
  };
  const prompts = [[1]];
  const of = async (dryMultiplier: number, texts?: string[]) => {
    const { drySequenceBreakers } = NEUTRAL_SAMPLING;
    const sampling = {
      ...NEUTRAL_SAMPLING,
      dryMultiplier,
      drySequenceBreakers: texts ?? drySequenceBreakers,
    };
    const { submission } = await prepare({ prompts, sampling }, idle as unknown as typeof model);
    return submission.sampling.dryBreakers;
  };
  expect((await of(1))?.map(({ tokens }) => tokens)).toEqual([[], [], [], []]);
  expect(await of(0, ['hello'])).toEqual([]);
});

test('a biased text has the tokens that it has at the beginning of a text', async () => {
  const model = servedModel(sentencePieceDirectory());
  const logitBiasTexts: [string, number | null][] = [
    ['hello', 5],
    ['', 1],
    ['w', null],
  ];
  const sampling = { ...NEUTRAL_SAMPLING, logitBias: [[7, 1] as [number, number]], logitBiasTexts };
  const { submission } = await prepare({ sampling }, model);
  expect(submission.sampling.logitBias).toEqual([
    [7, 1],
    ...model.tokenizer.encode('hello', PLAIN).map((id) => [id, 5]),
    ...model.tokenizer.encode('w', PLAIN).map((id) => [id, null]),
  ]);
  expect(submission.sampling).not.toHaveProperty('logitBiasTexts');
});
