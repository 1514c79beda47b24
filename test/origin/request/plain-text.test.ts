import { describe, expect, test } from 'vitest';
import { addedTokenCount } from '../../../origin/request/prompt-echo.ts';
import type { ServedModel } from '../../../origin/request/served-model.ts';
import type { GenerationRequest } from '../../../shared/generation.ts';
import { newDirectory } from '../../support/new-directory.ts';
import { writeByteTokenizer } from '../../support/synthetic/byte-tokenizer.ts';
import { byteLevelDirectory, sentencePieceDirectory } from '../tokenizer/fixtures.ts';
import { prepare, servedModel } from './served-models.ts';

/** The spelling of special tokens and of image marks, taken as text. */

const byteLevel = servedModel(byteLevelDirectory());
const withBos = servedModel(sentencePieceDirectory());

const imageDirectory = newDirectory();
writeByteTokenizer(imageDirectory, 320, ['<image>']);
const text = servedModel(imageDirectory);
const IMAGE = text.tokenizer.idOf('<image>')!;
const sighted: ServedModel = {
  ...text,
  images: {
    tokenId: IMAGE,
    token: '<image>',
    positions: 3,
    read: async () => ({ key: '', pixels: new Float32Array(3) }),
  },
};

const END = '<|endoftext|>';

const asText = ({ tokenizer }: ServedModel, part: string, addSpecialTokens = false) =>
  tokenizer.encode(part, { addSpecialTokens, parseSpecial: false });

async function tokensOf(changes: Partial<GenerationRequest>, model: ServedModel) {
  const { submission } = await prepare({ plainText: true, ...changes }, model);
  return submission.prompts.map(({ tokens }) => [...tokens]);
}

test('the spelling of a special token in a text and in a mixture is text', async () => {
  const end = byteLevel.tokenizer.idOf(END)!;
  const [plain, mixed] = await tokensOf({ prompts: [`a ${END}`, [5, END, 6]] }, byteLevel);
  expect(plain).toEqual(asText(byteLevel, `a ${END}`));
  expect(plain).not.toContain(end);
  expect(mixed).toEqual([5, ...asText(byteLevel, END), 6]);
  expect((await tokensOf({ prompts: [END], plainText: false }, byteLevel))[0]).toEqual([end]);
});

test('a text that begins with the spelling of BOS gets BOS before it', async () => {
  const { tokenizer } = withBos;
  const prompt = `${tokenizer.spelling(tokenizer.bosId!)}hello`;
  const [tokens] = await tokensOf({ prompts: [prompt] }, withBos);
  expect(tokens).toEqual([tokenizer.bosId, ...asText(withBos, prompt)]);
  const options = { addSpecialTokens: true, plainText: true };
  expect(addedTokenCount(prompt, tokens!, tokenizer, options)).toBe(1);
});

describe.each(['joint', 'separate'] as const)('scores with the tokenization %s', (tokenization) => {
  const scoring = (prompt: string, continuation: string) => ({
    context: { prompt, tokenization },
    prompts: [continuation],
    maxTokens: 0,
    promptTopLogprobs: 1,
    echo: true,
  });

  test('take the spelling in the prompt and in the continuation as text', async () => {
    const [tokens] = await tokensOf(scoring(`a${END}b`, ` c${END}`), byteLevel);
    const whole =
      tokenization === 'joint'
        ? asText(byteLevel, `a${END}b c${END}`)
        : [...asText(byteLevel, `a${END}b`), ...asText(byteLevel, ` c${END}`)];
    expect(tokens).toEqual(whole);
  });

  test.each([
    ['prompt', 'a <image>', ' b'],
    ['continuations[0]', 'a', ' b<image>'],
  ])(
    'refuse an image mark in %s, because they have no images, unless it is text',
    async (param, ...texts) => {
      await expect(prepare(scoring(...texts), sighted)).rejects.toMatchObject({
        code: 'invalid_value',
        param,
        message: expect.stringContaining("'parse_special': false"),
      });
      const [tokens] = await tokensOf(scoring(...texts), sighted);
      expect(tokens).toEqual(asText(text, texts.join('')));
    },
  );
});

describe('a model with images', () => {
  test('completes a text that mentions an image mark', async () => {
    expect(await tokensOf({ prompts: ['an <image> tag'] }, sighted)).toEqual([
      asText(text, 'an <image> tag'),
    ]);
    await expect(prepare({ prompts: ['an <image> tag'] }, sighted)).rejects.toMatchObject({
      message: expect.stringContaining("'parse_special': false"),
    });
  });

  test('finds images at their token ids, beside a text that mentions a mark', async () => {
    const images = ['data:image/png;base64,AQ=='];
    const [tokens] = await tokensOf({ prompts: [['<image>', IMAGE]], images }, sighted);
    expect(tokens).toEqual([...asText(text, '<image>'), IMAGE, IMAGE, IMAGE]);
    await expect(prepare({ prompts: ['<image>'], images, plainText: true }, sighted)).rejects.toMatchObject({
      param: 'images',
    });
  });
});
