import { describe, expect, test } from 'vitest';
import { parseInfill, parseNative } from '../../../worker/dialects/native-request.ts';
import { BOUNDS, parse, refusal } from './parsing.ts';

/** The ranges of llama.cpp's server, in its dialect and at its addresses. */

const READERS = {
  'the dialect': (body: object) => parse({ ...body }, 'llamacpp').generation,
  '/completion': (body: object) =>
    parseNative({ model: 'default', prompt: 'x', ...body }, BOUNDS).parsed.generation,
  '/infill': (body: object) =>
    parseInfill({ model: 'default', input_prefix: 'a', input_suffix: 'b', ...body }, BOUNDS).parsed
      .generation,
};

describe.each(Object.entries(READERS))('%s', (_, read) => {
  test.each([
    [{ temperature: 3 }, { temperature: 3 }],
    [{ temperature: -1 }, { temperature: 0 }],
    [{ repeat_penalty: 2.5 }, { repetitionPenalty: 2.5 }],
    [{ repetition_penalty: 2.5 }, { repetitionPenalty: 2.5 }],
    [
      { frequency_penalty: 4, presence_penalty: -3 },
      { frequencyPenalty: 4, presencePenalty: -3 },
    ],
    [{ dry_base: 0.5 }, { dryBase: 1.75 }],
    [{ dry_base: -2 }, { dryBase: 1.75 }],
    [{ top_k: -40 }, { topK: 0 }],
    [
      { top_p: 1.5, min_p: -0.1 },
      { topP: 1, minP: 0 },
    ],
    [
      { xtc_probability: 2, xtc_threshold: -1 },
      { xtcProbability: 1, xtcThreshold: 0 },
    ],
    [{ logit_bias: { 5: -1e6 } }, { logitBias: [[5, -1e6]] }],
    [
      {
        logit_bias: [
          [5, 200],
          [' Hello', false],
          ['a', 1.5],
        ],
      },
      {
        logitBias: [[5, 200]],
        logitBiasTexts: [
          [' Hello', null],
          ['a', 1.5],
        ],
      },
    ],
    [{ logit_bias: { ' Hello': -5, 7: 1 } }, { logitBias: [[7, 1]], logitBiasTexts: [[' Hello', -5]] }],
  ])('reads %j', (fields, sampling) => {
    expect(read(fields).sampling).toMatchObject(sampling);
  });

  test('takes 256 stops, and no empty one', () => {
    const stop = Array.from({ length: 256 }, (_, index) => `s${index}`);
    expect(read({ stop }).stop).toEqual(stop);
    expect(read({ stop: ['', 'a', ''] }).stop).toEqual(['a']);
    expect(read({ stop: [''] }).stop).toEqual([]);
  });
});

test.each([
  ['temperature', { temperature: 3 }],
  ['repeat_penalty', { repeat_penalty: 2.5 }],
  ['frequency_penalty', { frequency_penalty: 4 }],
  ['presence_penalty', { presence_penalty: -3 }],
  ['dry_base', { dry_base: 0.5 }],
  ['logit_bias.a', { logit_bias: { a: 1 } }],
  ['logit_bias.5', { logit_bias: { 5: 200 } }],
  ['stop', { stop: new Array(33).fill('a') }],
  ['stop[0]', { stop: [''] }],
  ['top_p', { top_p: 1.5 }],
])('other dialects refuse %s in %j', (param, fields) => {
  for (const dialect of ['openai', 'fireworks', 'mistralrs', 'vllm'] as const)
    expect(refusal(fields, dialect)?.param).toBe(param);
});

test.each([
  ['repeat_penalty', { repeat_penalty: 0 }],
  ['temperature', { temperature: 1e10 }],
  ['temperature', { temperature: '1' }],
  ['logit_bias[0][1]', { logit_bias: [['a', true]] }],
  ['logit_bias', { logit_bias: { ['x'.repeat(16_385)]: 1 } }],
  ['stop', { stop: new Array(257).fill('a') }],
  ['stop', { stop: new Array(40).fill('x'.repeat(4_000)) }],
])('the dialect refuses %s in %j', (param, fields) => {
  expect(refusal(fields, 'llamacpp')?.param).toBe(param);
});
