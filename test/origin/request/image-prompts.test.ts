import { describe, expect, test } from 'vitest';
import { ImageFault } from '../../../origin/images/prompt-images.ts';
import { describeModel, type ServedModel } from '../../../origin/request/served-model.ts';
import type { GenerationRequest } from '../../../shared/generation.ts';
import { newDirectory } from '../../support/new-directory.ts';
import { writeByteTokenizer } from '../../support/synthetic/byte-tokenizer.ts';
import { prepare as prepareFor, servedModel } from './served-models.ts';

const directory = newDirectory();
writeByteTokenizer(directory, 320, ['<|fim_prefix|>', '<|fim_suffix|>', '<|fim_middle|>', '<picture>']);
const IMAGE = 317;
const POSITIONS = 5;

/** Reads one byte as three pixels. */
const sighted = (token = '<picture>') => ({
  ...servedModel(directory, 64),
  images: {
    tokenId: IMAGE,
    token,
    positions: POSITIONS,
    read: async (base64: string) => {
      const bytes = Buffer.from(base64, 'base64');
      if (bytes.length !== 1) throw new ImageFault('it is no picture');
      return { key: base64, pixels: new Float32Array(3).fill(bytes[0]!) };
    },
  },
});
const blind = servedModel(directory, 64);

const image = (byte: number) => `data:image/png;base64,${Buffer.from([byte]).toString('base64')}`;
const prepare = (changes: Partial<GenerationRequest>, model: ServedModel = sighted()) =>
  prepareFor(changes, model);
const refusal = (changes: Partial<GenerationRequest>, model?: Parameters<typeof prepare>[1]) =>
  prepare(changes, model).then(
    () => null,
    ({ code, param, message }) => ({ code, param, message }),
  );
const ids = (text: string) => blind.tokenizer.encode(text, { addSpecialTokens: false, parseSpecial: true });
const room = Array<number>(POSITIONS).fill(IMAGE);

describe('images in prompts', () => {
  test('every mark is replaced by one image and counts as its prompt tokens', async () => {
    const { submission, preamble } = await prepare({
      prompts: ['say <image>what', 'no more'],
      images: [image(1)],
    });
    expect([...submission.prompts[0]!.tokens]).toEqual([...ids('say '), ...room, ...ids('what')]);
    expect(submission.prompts[0]!.images).toMatchObject([{ at: ids('say ').length, count: POSITIONS }]);
    expect(submission.prompts[1]!.images).toBeUndefined();
    const [first, second] = submission.prompts.map(({ tokens }) => tokens.length);
    expect(preamble).toEqual([{ type: 'accepted', model: 'tiny', promptTokens: [first, second] }]);
  });

  test('images fill the marks in order across prompts, also for token ids', async () => {
    const { submission } = await prepare({
      prompts: ['<image>a<picture>', [9, IMAGE, 'b<image>', 8]],
      images: [image(1), image(2), image(3), image(1)],
    });
    const [one, other] = submission.prompts.map(({ images }) => images!);
    expect(one!.map(({ at, pixels }) => [at, pixels[0]])).toEqual([
      [0, 1],
      [POSITIONS + 1, 2],
    ]);
    expect(other!.map(({ at, pixels }) => [at, pixels[0]])).toEqual([
      [1, 3],
      [POSITIONS + 2, 1],
    ]);
    expect(one![0]!.key).toBe(other![1]!.key);
    expect(new Set([...one!, ...other!].map(({ key }) => key)).size).toBe(3);
  });

  test('echo shows the original prompt', async () => {
    const { submission, preamble } = await prepare({
      prompts: ['a<image>', 'b'],
      images: [image(1)],
      echo: true,
    });
    expect(submission.echo).toBe(false);
    expect(preamble.slice(1)).toEqual([
      { type: 'prompt', prompt: 0, text: 'a<image>', ids: [...ids('a'), IMAGE] },
      { type: 'prompt', prompt: 1, text: 'b', ids: ids('b') },
    ]);
    const without = await prepare({ prompts: ['b'], echo: true });
    expect(without.submission.echo).toBe(true);
  });

  test('the model description has the tokens per image only for models with images', () => {
    expect(describeModel(sighted()).imageTokens).toBe(POSITIONS);
    expect(Object.keys(describeModel(blind))).not.toContain('imageTokens');
  });
});

describe('refuses', () => {
  const one = { prompts: ['<image>'], images: [image(1)] };
  const invalid = (param: string, message: RegExp) => ({
    code: 'invalid_value',
    param,
    message: expect.stringMatching(message),
  });

  test.each<[string, Partial<GenerationRequest>, RegExp]>([
    [
      'too few images',
      { prompts: ['<image>', '<image>'], images: [image(1)] },
      /got 1 image, .* has 2 '<image>' marks/,
    ],
    [
      'too few, where the context has no room for more either',
      { prompts: ['<image>'.repeat(13)], images: [image(1)] },
      /got 1 image, .* has 13 /,
    ],
    ['too many', { prompts: ['<image>'], images: [image(1), image(2)] }, /got 2 images.* has 1 /],
    ['none', { prompts: ['<image>'] }, /got 0 images.* has 1 /],
    ['none for an id', { prompts: [[IMAGE]] }, /got 0 images.* has 1 /],
  ])('%s', async (_, changes, message) => {
    expect(await refusal(changes)).toEqual(invalid('images', message));
  });

  test.each([
    ['https://example.com/a.png', /not supported.*base64/],
    ['data:text/plain;base64,AAAA', /expected data:image/],
    ['AAAA', /expected data:image/],
    ['data:image/png;base64,', /not base64/],
    ['data:image/png;base64,A', /not base64/],
    ['data:image/png;base64,AA=', /not base64/],
    ['data:image/png;base64,A!==', /not base64/],
    ['data:image/png;base64,AAAA', /it is no picture/],
  ])('image %s', async (bad, message) => {
    const images = [image(1), bad];
    expect(await refusal({ prompts: ['<image><image>'], images })).toEqual(invalid('images[1]', message));
  });

  test.each(['image/png,AQ==', 'image/png;base64,AQ', 'data:image/x-icon;charset=utf-8;base64,AQ=='])(
    'but not %s',
    async (good) => {
      expect(await refusal({ prompts: ['<image>'], images: [good] })).toBeNull();
    },
  );

  test('images for a text model, with a suffix, or with logprobs of the prompt', async () => {
    const unsupported = { code: 'unsupported_parameter', param: 'images' };
    expect(await refusal(one, blind)).toMatchObject(unsupported);
    expect(await refusal({ prompts: ['<image>'] }, blind)).toBeNull();
    expect(blind.infill).not.toBeNull();
    expect(await refusal({ ...one, suffix: 'b' })).toMatchObject(unsupported);
    expect(await refusal({ ...one, promptTopLogprobs: 1 })).toMatchObject(unsupported);
  });

  test('images in a prompt that is cut or does not fit, before reading an image', async () => {
    const cut = await refusal({ prompts: ['abc<image>'], images: ['nothing'], truncatePromptTokens: 6 });
    expect(cut).toMatchObject({ code: 'conflicting_parameters', param: 'truncate_prompt_tokens' });
    expect(
      await refusal({ prompts: ['abc<image>'], images: [image(1)], truncatePromptTokens: 8 }),
    ).toBeNull();
    const many = { prompts: ['<image>'.repeat(13)], images: Array<string>(13).fill('nothing') };
    expect(await refusal(many)).toMatchObject({ code: 'context_length_exceeded' });
  });
});
