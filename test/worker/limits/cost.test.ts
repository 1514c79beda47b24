import { describe, expect, test } from 'vitest';
import type { OriginModel } from '../../../shared/origin-model.ts';
import { type Limits, type Principal, UNLIMITED } from '../../../shared/tenant.ts';
import { parseInfill } from '../../../worker/dialects/native-request.ts';
import type { Settings } from '../../../worker/env/settings.ts';
import { boundsOf, costOf, costWith } from '../../../worker/generation/request-cost.ts';
import { parse } from '../dialects/parsing.ts';

const model: OriginModel = {
  id: 'm',
  created: 0,
  contextLength: 4096,
  vocabularySize: 100,
  infill: false,
  aliases: [],
  defaults: {},
  state: 'loaded',
};

const cost = (body: Readonly<Record<string, unknown>>) => costOf(parse(body), model).most;

describe('the estimated cost of a request', () => {
  test.each([
    ['every prompt, and what each may generate', { prompt: ['abcd', 'abcde'], max_tokens: 10 }, 1 + 2 + 20],
    ['every choice, of the prompt but once', { prompt: 'abcd', n: 3, max_tokens: 10 }, 1 + 30],
    ['candidates that are not shown, too', { prompt: 'abcd', n: 2, best_of: 5, max_tokens: 10 }, 1 + 50],
    ['an id for a token', { prompt: [1, 2, 3], max_tokens: 0 }, 3],
    ['ids and texts of a mixture', { prompt: [[1, 2], 'abcde'], max_tokens: 1 }, 2 + 2 + 2],
    ['a text to the end of the context with all of it', { prompt: 'abcd', max_tokens: -1 }, 1 + 4096],
    ['only the prompt of a completion with a suffix', { prompt: 'abcd', suffix: 'abcd', max_tokens: 0 }, 1],
    ['never more than the context', { prompt: 'abcd', max_tokens: 1_000_000 }, 1 + 4096],
  ])('counts %s', (_, body, tokens) => {
    expect(cost(body)).toBe(tokens);
  });
});

describe('the first reservation', () => {
  test.each([
    ['the prompt and a first part of the completion', { max_tokens: 2_000 }, 1 + 256],
    ['a short completion as a whole', { max_tokens: 200 }, 1 + 200],
    ['one first part of all choices', { max_tokens: 2_000, n: 3 }, 1 + 256],
    ['all candidates that are ranked', { max_tokens: 2_000, best_of: 2 }, 1 + 4_000],
  ])('has %s', (_, fields, tokens) => {
    const parsed = parse({ prompt: 'abcd', ...fields });
    expect(costOf(parsed, model).tokens).toBe(tokens);
    expect(costWith([1], parsed, { ...model, contextLength: 8_192 }).tokens).toBe(tokens);
  });
});

describe('the estimated cost of an infill', () => {
  const infillCost = (fields: Readonly<Record<string, unknown>>) => {
    const body = { model: 'm', input_prefix: 'abcd', input_suffix: 'abcd', prompt: 'a', n_predict: 10 };
    const { parsed } = parseInfill(
      { ...body, ...fields },
      { maxTokens: null, sequences: 1, logprobBytes: 1 },
    );
    return costOf(parsed, model).most;
  };
  const files = (count: number) =>
    Array.from({ length: count }, () => ({ filename: 'f', text: 'x'.repeat(4_000) }));

  test('counts all of its texts, and the rest never more than the context, to which it is cut', () => {
    expect(infillCost({})).toBe(1 + 1 + 1 + 10);
    expect(infillCost({ input_extra: files(1) })).toBe(1 + 1 + 1 + 1_000 + 10);
    expect(infillCost({ input_extra: files(9) })).toBe(1 + 4_096 + 10);
  });
});

describe('the cost of a request whose prompts are tokenized', () => {
  test.each([
    ['prompts, and what each choice may generate', { prompt: ['a', 'b'], n: 2, max_tokens: 10 }, [7, 9], 56],
    ['no more than fits into the context', { prompt: 'a', n: 2, max_tokens: 100 }, [4090], 4090 + 12],
    ['a text to the end of the context with all of it', { prompt: 'a', max_tokens: -1 }, [96], 4096],
    ['a prompt that is larger than the context', { prompt: 'a', max_tokens: 5 }, [5000], 5000],
  ])('counts %s', (_, body, promptTokens, tokens) => {
    expect(costWith(promptTokens, parse(body), model).most).toBe(tokens);
  });
});

describe('the bounds of a request', () => {
  const bounds = (ofTenant: Partial<Limits>, ofKey: Partial<Limits>) => {
    const principal = {
      tenant: { limits: { ...UNLIMITED, ...ofTenant } },
      key: { limits: { ...UNLIMITED, ...ofKey } },
    } as unknown as Principal;
    return boundsOf(principal, { MAX_SEQUENCES: 16, MAX_LOGPROB_BYTES: 64 } as Settings);
  };

  test('takes the minimum of tenant, key and deployment', () => {
    expect(bounds({}, {})).toEqual({ maxTokens: null, sequences: 16, logprobBytes: 64 });
    expect(bounds({ maxTokens: 30, maxSequences: 4 }, {})).toEqual({
      maxTokens: 30,
      sequences: 4,
      logprobBytes: 64,
    });
    expect(bounds({ maxTokens: 30, maxSequences: 4 }, { maxTokens: 20, maxSequences: 8 })).toEqual({
      maxTokens: 20,
      sequences: 4,
      logprobBytes: 64,
    });
    expect(bounds({ maxLogprobBytes: 8 }, { maxLogprobBytes: 9 }).logprobBytes).toBe(8);
    expect(bounds({ maxLogprobBytes: 80 }, {}).logprobBytes).toBe(64);
    expect(bounds({}, { maxTokens: 50, maxSequences: 99 })).toEqual({
      maxTokens: 50,
      sequences: 16,
      logprobBytes: 64,
    });
  });
});
