import { describe, expect, test } from 'vitest';
import { parse, refusal } from './parsing.ts';

describe('conflicting fields', () => {
  const tool = { type: 'function', function: { name: 'f', strict: true } };
  test.each([
    ['best_of below n', { best_of: 2, n: 3 }, 'best_of'],
    ['best_of with stream', { best_of: 2, stream: true }, 'best_of'],
    ['best_of above n with stream', { best_of: 3, n: 2, stream: true }, 'best_of'],
    ['stream_options without stream', { stream_options: {} }, 'stream_options'],
    ['min_tokens above max_tokens', { min_tokens: 5, max_tokens: 4 }, 'min_tokens'],
    ['min_tokens above the default max_tokens', { min_tokens: 17 }, 'min_tokens'],
    ['prompt_logprobs with stream', { prompt_logprobs: 1, stream: true }, 'prompt_logprobs'],
    ['images with a suffix', { images: ['data:,'], suffix: 'b' }, 'images'],
    ['images with echoed logprobs', { images: ['data:,'], echo: true, logprobs: 1 }, 'images'],
    ['images with echo_last', { images: ['data:,'], echo_last: 2 }, 'images'],
    ['images with prompt_logprobs', { images: ['data:,'], prompt_logprobs: 0 }, 'images'],
    ['rows without logprobs', { logprobs_format: { encoding: 'float32' } }, 'logprobs_format'],
    ['listed logprobs without logprobs', { logprob_token_ids: [1] }, 'logprob_token_ids'],
    [
      'listed logprobs of a prompt',
      { logprob_token_ids: [1], logprobs: 1, echo: true, max_tokens: 0 },
      'logprob_token_ids',
    ],
    ['two truncations', { truncate_sequence: true, truncate_prompt_tokens: 5 }, 'truncate_sequence'],
    ['suffix with a grammar', { suffix: 'b', grammar: 'root ::= "a"' }, 'suffix'],
    ['suffix with echoed logprobs', { suffix: 'b', echo: true, logprobs: 1 }, 'echo'],
    ['suffix with prompt_logprobs', { suffix: 'b', prompt_logprobs: 1 }, 'prompt_logprobs'],
    ['suffix with echo_last', { suffix: 'b', echo_last: 1 }, 'echo_last'],
    ['suffix with echo_last and logprobs', { suffix: 'b', echo_last: 1, logprobs: 1 }, 'echo_last'],
    ['two constraints', { grammar: 'root ::= "a"', json_schema: {} }, 'grammar'],
    [
      'two constraints of different servers',
      { guided_regex: 'a', response_format: { type: 'json_object' } },
      'response_format',
    ],
    [
      'a tool and a grammar',
      { tools: [tool], tool_choice: { type: 'function', function: { name: 'f' } }, regex: 'a' },
      'regex',
    ],
  ])('%s', (_, body, param) => {
    expect(refusal(body)).toMatchObject({
      code: 'conflicting_parameters',
      param,
      message: expect.stringContaining(`'${param}'`),
    });
    expect(Object.keys(body)).toContain(param);
  });

  test('names both values of fields of which one must not exceed the other', () => {
    expect(refusal({ min_tokens: 5, max_tokens: 4 })?.message).toMatch(
      /'min_tokens' is 5, .*, which is 4\.$/,
    );
    expect(refusal({ min_tokens: 17 })?.message).toMatch(/'min_tokens' is 17, .*, which is 16\.$/);
    expect(refusal({ best_of: 2, n: 3 })?.message).toMatch(/'best_of' is 2, .*, which is 3\.$/);
  });

  test('treats an empty suffix as a plain completion', () => {
    expect(parse({ suffix: '', grammar: 'root ::= "a"' }).generation.suffix).toBeNull();
  });
});
