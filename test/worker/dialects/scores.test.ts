import { describe, expect, test } from 'vitest';
import { parse, refusal } from './parsing.ts';

describe('logprobs', () => {
  test('true uses the number in top_logprobs; n_probs 0 is off, logprobs 0 is not', () => {
    expect(parse({ logprobs: true, top_logprobs: 3 }).generation.topLogprobs).toBe(3);
    expect(refusal({ logprobs: true })).toMatchObject({ code: 'invalid_type', param: 'logprobs' });
    expect(parse({ n_probs: 0 }).generation.topLogprobs).toBeNull();
    expect(parse({ logprobs: 0 }).generation.topLogprobs).toBe(0);
  });

  test.each(['logprobs', 'top_logprobs', 'n_probs', 'prompt_logprobs'])('false in %s means none', (field) => {
    expect(parse({ [field]: false })).toEqual(parse({}));
    expect(parse({ [field]: false, stream: true })).toEqual(parse({ stream: true }));
  });

  test('false in logprobs agrees with no alternatives, and with nothing else', () => {
    expect(parse({ logprobs: false, top_logprobs: 0, n_probs: 0 }).response.logprobs).toBeNull();
    expect(parse({ logprobs: 2, top_logprobs: false }).response.logprobs).toBe(2);
    for (const field of ['top_logprobs', 'n_probs']) {
      const error = refusal({ logprobs: false, [field]: 2 });
      expect(error).toMatchObject({ code: 'conflicting_parameters', param: 'logprobs' });
      expect(error?.message).toContain(`'logprobs' and '${field}'`);
    }
  });

  test('of listed ids replace the most likely ones; an empty list does not', () => {
    const listed = { logprobs: 1, logprob_token_ids: [7, 3, 7] };
    expect(parse(listed).generation).toMatchObject({ topLogprobs: 1, logprobTokenIds: [7, 3] });
    expect(parse({ ...listed, logprob_token_ids: [] }).generation).not.toHaveProperty('logprobTokenIds');
    expect(refusal({ ...listed, use_beam_search: true })).toMatchObject({ param: 'use_beam_search' });
  });

  test('score prompt tokens for echo with logprobs, for prompt_logprobs and for echo_last', () => {
    expect(parse({ echo: true, logprobs: 2 }).generation).toMatchObject({ echo: true, promptTopLogprobs: 2 });
    expect(parse({ echo: true }).generation).toMatchObject({ echo: true, promptTopLogprobs: null });
    expect(parse({ prompt_logprobs: 1 }).generation).toMatchObject({ echo: true, promptTopLogprobs: 1 });
    expect(parse({ echo: true, logprobs: 1, prompt_logprobs: 4 }).generation.promptTopLogprobs).toBe(4);
    expect(parse({ echo_last: 3 }).generation).toMatchObject({ echo: true, promptTopLogprobs: 0 });
    expect(parse({ prompt_logprobs: 1, logprob_start_len: 7 }).generation.promptLogprobStart).toBe(7);
    expect(parse({ prompt_logprob_start: 7 }).generation).not.toHaveProperty('promptLogprobStart');
    expect(parse({ echo_last: 0, echo: true }).response.echo).toBe(false);
  });
});

describe('best_of', () => {
  test('requests candidates with scores; 0 and null mean n', () => {
    expect(parse({ best_of: 5, n: 2 })).toMatchObject({
      generation: { choices: 5, scores: true },
      response: { n: 2, rank: true },
    });
    expect(parse({ best_of: 0, n: 2 })).toMatchObject({
      generation: { choices: 2, scores: false },
      response: { rank: false },
    });
    expect(refusal({ best_of: 1, stream: true })).toBeNull();
    expect(parse({ best_of: 2, n: 2, stream: true })).toEqual({
      ...parse({ n: 2, stream: true }),
      extra: expect.anything(),
    });
    expect(refusal({ best_of: null, n: 3, stream: true })).toBeNull();
  });
});
