import { describe, expect, test } from 'vitest';
import { parse, refusal } from '../dialects/parsing.ts';

test('reports that a seed of another type must be an integer', () => {
  for (const seed of ['1', 1.5, Number.POSITIVE_INFINITY]) {
    expect(refusal({ seed })?.message).toContain("'seed': expected an integer");
  }
});

describe('bounds of tenant, key and deployment', () => {
  const bounds = { maxTokens: 100, sequences: 8, logprobBytes: 1 };

  test('rejects max_tokens above the bound, and applies the bound as default', () => {
    expect(refusal({ max_tokens: 101 }, 'openai', bounds)).toMatchObject({
      code: 'integer_above_max_value',
      param: 'max_tokens',
    });
    expect(refusal({ n_predict: 101 }, 'openai', bounds)?.param).toBe('n_predict');
    expect(parse({ max_tokens: -1 }, 'openai', bounds).generation.maxTokens).toBe(100);
    expect(parse({}, 'llamacpp', bounds).generation.maxTokens).toBe(100);
    expect(parse({ max_tokens: 100 }, 'openai', bounds).generation.maxTokens).toBe(100);
  });

  test('bounds prompts · max(n, best_of)', () => {
    const prompt = ['a', 'b', 'c', 'd'];
    expect(refusal({ prompt, n: 2 }, 'openai', bounds)).toBeNull();
    expect(refusal({ prompt, n: 3 }, 'openai', bounds)).toMatchObject({
      code: 'integer_above_max_value',
      param: 'n',
    });
    expect(refusal({ prompt, n_cmpl: 3 }, 'openai', bounds)).toMatchObject({
      param: 'n_cmpl',
      message: expect.stringContaining("'n_cmpl'"),
    });
    expect(refusal({ prompt, best_of: 3 }, 'openai', bounds)).toMatchObject({ param: 'best_of' });
    expect(refusal({ prompt: Array.from({ length: 9 }, () => 'a') }, 'openai', bounds)).toMatchObject({
      code: 'array_above_max_length',
      param: 'prompt',
    });
  });
});
