import { describe, expect, test } from 'vitest';
import { ApiError } from '../../../shared/errors.ts';
import type { OriginModel } from '../../../shared/origin-model.ts';
import { costOf } from '../../../worker/generation/request-cost.ts';
import { checkCapabilities } from '../../../worker/generation/resolve-model.ts';
import { parse, refusal as refusalOf } from './parsing.ts';

const blind: OriginModel = {
  id: 'm',
  created: 0,
  contextLength: 4096,
  vocabularySize: 100,
  infill: false,
  aliases: [],
  defaults: {},
  state: 'loaded',
};
const sighted: OriginModel = { ...blind, imageTokens: 576 };
const image = 'data:image/png;base64,AAAA';

const refusal = (body: Readonly<Record<string, unknown>>, model: OriginModel) => {
  try {
    checkCapabilities(parse(body), model);
    return null;
  } catch (thrown) {
    return thrown instanceof ApiError ? thrown.envelope().error : thrown;
  }
};

describe('images', () => {
  test('are sent unchanged; an empty list and null mean no images', () => {
    expect(parse({ prompt: '<image>', images: [image] }).generation.images).toEqual([image]);
    for (const images of [[], null])
      expect(Object.keys(parse({ images }).generation)).not.toContain('images');
  });

  test('must match the number of marks, unless token ids may be marks', () => {
    const count = { code: 'invalid_value', param: 'images' };
    expect(refusal({ prompt: ['<image>', 'a<image>b'], images: [image, image] }, sighted)).toBeNull();
    expect(refusal({ prompt: ['<image>', 'b'], images: [image, image] }, sighted)).toMatchObject(count);
    expect(refusal({ prompt: [5, 'a'], images: [image] }, sighted)).toBeNull();
  });

  test('may be a list for each prompt, with as many images as the prompt has marks', () => {
    const prompt = ['<image>', 'b', 'c<image><image>'];
    const lists = [['1'], [], ['2', '3']];
    expect(parse({ prompt, images: lists }).generation.images).toEqual(['1', '2', '3']);
    expect(parse({ prompt: '<image>', images: [['1']] }).generation.images).toEqual(['1']);
    expect(parse({ prompt: [[5], 'b'], images: [['1'], []] }).generation.images).toEqual(['1']);
    expect(refusalOf({ prompt, images: [['1'], ['2', '3']] })).toMatchObject({ param: 'images' });
    expect(refusalOf({ prompt, images: [['1'], ['2'], ['3']] })).toMatchObject({ param: 'images[1]' });
    expect(refusalOf({ prompt, images: [[], [], ['1', '2', '3']] })).toMatchObject({ param: 'images[0]' });
    expect(refusalOf({ prompt: '<image>', images: [['1']], parse_special: false })).toMatchObject({
      param: 'images[0]',
    });
  });

  test('are rejected if the model takes none, but not while this is unknown', () => {
    const body = { prompt: '<image>', images: [image] };
    expect(refusal(body, blind)).toMatchObject({ code: 'unsupported_parameter', param: 'images' });
    expect(refusal(body, { ...blind, state: 'unloaded' })).toBeNull();
  });

  test('count with their tokens at admission', () => {
    const without = costOf(parse({ prompt: 'abcd' }), sighted);
    const withThem = costOf(parse({ prompt: '<image><image>', images: [image, image] }), sighted);
    expect(without.tokens).toBe(1 + 16);
    expect(withThem.tokens).toBeGreaterThanOrEqual(2 * 576 + 16);
  });
});
