import { describe, expect, test } from 'vitest';
import { NEUTRAL_SAMPLING } from '../../../shared/sampling.ts';
import { parse } from './parsing.ts';

describe('defaults', () => {
  test('uses neutral sampling and 16 tokens without fields', () => {
    const { generation, response, extra } = parse({});
    expect(generation).toEqual({
      prompts: ['x'],
      suffix: null,
      choices: 1,
      maxTokens: 16,
      minTokens: 0,
      stop: [],
      stopTokenIds: [],
      includeStop: false,
      ignoreEos: false,
      sampling: NEUTRAL_SAMPLING,
      constraint: null,
      topLogprobs: null,
      promptTopLogprobs: null,
      echo: false,
      scores: false,
      tokenIds: false,
      skipSpecialTokens: true,
      addSpecialTokens: true,
      contextOverflow: 'truncate',
      truncatePromptTokens: null,
      cachePrompt: true,
      cacheSalt: '',
      stream: false,
    });
    expect(response).toMatchObject({ n: 1, rank: false, echo: false, logprobs: null, streamUsage: 'none' });
    expect(extra).toEqual({});
  });

  test('marks requests of service_tier flex only', () => {
    expect(parse({ service_tier: 'flex' }).generation.flex).toBe(true);
    for (const tier of ['auto', 'default', 'priority', 'scale', null]) {
      expect(parse({ service_tier: tier }).generation).toEqual(parse({}).generation);
    }
  });

  test.each([
    [{ include_usage: false }, 'none'],
    [{ include_usage: true }, 'final'],
    [{ include_usage: null }, 'last-choice'],
    [{}, 'last-choice'],
  ])('sends usage in fireworks streams unless %j forbids it', (stream_options, streamUsage) => {
    expect(parse({ stream: true, stream_options }, 'fireworks').response.streamUsage).toBe(streamUsage);
  });
});
