import { describe, expect, test } from 'vitest';
import { NEUTRAL_SAMPLING } from '../../../shared/sampling.ts';
import { parse, refusal } from './parsing.ts';

describe('defaults', () => {
  test('a bare request is neutral sampling, sixteen tokens, nothing special', () => {
    const { generation, answer, extra } = parse({});
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
      logprobs: null,
      promptLogprobs: null,
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
    expect(answer).toMatchObject({ n: 1, rank: false, echo: false, logprobs: null, streamUsage: 'none' });
    expect(extra).toEqual({});
  });
});

describe('prompt forms', () => {
  test.each([
    ['a text is one prompt', 'a', ['a']],
    ['texts are many', ['a', 'b'], ['a', 'b']],
    ['ids are one', [1, 2], [[1, 2]]],
    ['lists of ids are many', [[1], [2, 3]], [[1], [2, 3]]],
    ['ids and texts mixed are one', [12, 'a', 56], [[12, 'a', 56]]],
    ['a text among texts and an id makes one', ['a', 1], [['a', 1]]],
    ['lists of mixtures are many', [['a', 1], [2]], [['a', 1], [2]]],
    ['texts and lists may stand side by side', ['a', [1]], ['a', [1]]],
  ])('%s', (_, prompt, prompts) => {
    expect(parse({ prompt }).generation.prompts).toEqual(prompts);
  });
});

describe('aliases', () => {
  test.each([
    ['max_tokens', 'max_completion_tokens', 5, 6],
    ['max_tokens', 'n_predict', 5, 6],
    ['repetition_penalty', 'repeat_penalty', 1.5, 1.25],
    ['mirostat_tau', 'mirostat_target', 2, 3],
    ['mirostat_eta', 'mirostat_lr', 0.5, 0.25],
    ['logprobs', 'n_probs', 2, 3],
    ['logprobs', 'top_logprobs', 2, 3],
    ['typical_p', 'typ_p', 0.5, 0.25],
    ['n', 'n_cmpl', 2, 3],
    ['include_stop_str_in_output', 'no_stop_trim', true, false],
    ['return_token_ids', 'return_tokens', true, false],
    ['cache_salt', 'prompt_cache_key', 'a', 'b'],
    ['cache_salt', 'prompt_cache_isolation_key', 'a', 'b'],
  ])('%s and %s: one is as good as the other, two must agree', (canonical, alias, value, other) => {
    const mirostat = { mirostat: 2 };
    expect(parse({ ...mirostat, [alias]: value })).toEqual(parse({ ...mirostat, [canonical]: value }));
    expect(refusal({ [canonical]: value, [alias]: value })).toBeNull();
    const error = refusal({ [canonical]: value, [alias]: other });
    expect(error).toMatchObject({ code: 'conflicting_parameters', param: canonical });
    expect(error?.message).toContain(`'${canonical}' and '${alias}'`);
  });

  test('truncate_sequence is truncate_prompt_tokens: -1', () => {
    expect(parse({ truncate_sequence: true }).generation.truncatePromptTokens).toBe(-1);
    expect(parse({ truncate_prompt_tokens: -1 }).generation.truncatePromptTokens).toBe(-1);
    expect(parse({ truncate_prompt_tokens: 9 }).generation.truncatePromptTokens).toBe(9);
  });
});

describe('sampling', () => {
  const sampling = (body: Record<string, unknown>) => parse(body).generation.sampling;

  test('a target or a rate alone switches Mirostat 2 on, with the lower default target', () => {
    expect(sampling({ mirostat_lr: 0.2 })).toMatchObject({ mirostat: 2, mirostatTau: 1.5, mirostatEta: 0.2 });
    expect(sampling({ mirostat_target: 3 })).toMatchObject({ mirostat: 2, mirostatTau: 3, mirostatEta: 0.1 });
    expect(sampling({ mirostat: 1 })).toMatchObject({ mirostat: 1, mirostatTau: 5 });
    expect(sampling({ mirostat: 0, mirostat_target: 3 })).toMatchObject({ mirostat: 0 });
    expect(sampling({ mirostat_tau: 3 })).toMatchObject({ mirostat: 0 });
  });

  test('top_k -1 and 0 are off; seed -1 is random', () => {
    expect(sampling({ top_k: -1 }).topK).toBe(0);
    expect(sampling({ top_k: 0 }).topK).toBe(0);
    expect(sampling({ seed: -1 }).seed).toBeNull();
    expect(sampling({ seed: 0 }).seed).toBe(0);
  });

  test('logit_bias as a map and as pairs; false forbids', () => {
    const pairs = [
      [5, -100],
      [7, null],
    ];
    expect(sampling({ logit_bias: { 5: -100, 7: false } }).logitBias).toEqual(pairs);
    expect(
      sampling({
        logit_bias: [
          [5, -100],
          [7, false],
        ],
      }).logitBias,
    ).toEqual(pairs);
  });
});

describe('logprobs', () => {
  test('true leaves the number to top_logprobs; n_probs 0 is off, logprobs 0 is not', () => {
    expect(parse({ logprobs: true, top_logprobs: 3 }).generation.logprobs).toBe(3);
    expect(refusal({ logprobs: true })).toMatchObject({ code: 'invalid_type', param: 'logprobs' });
    expect(refusal({ logprobs: false })?.param).toBe('logprobs');
    expect(parse({ n_probs: 0 }).generation.logprobs).toBeNull();
    expect(parse({ logprobs: 0 }).generation.logprobs).toBe(0);
  });

  test('prompt tokens are scored for echo with logprobs, for prompt_logprobs, and to find the last k', () => {
    expect(parse({ echo: true, logprobs: 2 }).generation).toMatchObject({ echo: true, promptLogprobs: 2 });
    expect(parse({ echo: true }).generation).toMatchObject({ echo: true, promptLogprobs: null });
    expect(parse({ prompt_logprobs: 1 }).generation).toMatchObject({ echo: true, promptLogprobs: 1 });
    expect(parse({ echo: true, logprobs: 1, prompt_logprobs: 4 }).generation.promptLogprobs).toBe(4);
    expect(parse({ echo_last: 3 }).generation).toMatchObject({ echo: true, promptLogprobs: 0 });
    expect(parse({ echo_last: 0, echo: true }).answer.echo).toBe(false);
  });
});

describe('best_of', () => {
  test('asks for candidates with scores; 0 and null mean n', () => {
    expect(parse({ best_of: 5, n: 2 })).toMatchObject({
      generation: { choices: 5, scores: true },
      answer: { n: 2, rank: true },
    });
    expect(parse({ best_of: 0, n: 2 })).toMatchObject({
      generation: { choices: 2, scores: false },
      answer: { rank: false },
    });
    expect(refusal({ best_of: 1, stream: true })).toBeNull();
    expect(refusal({ best_of: null, n: 3, stream: true })).toBeNull();
  });
});

describe('fields that contradict each other', () => {
  const tool = { type: 'function', function: { name: 'f', strict: true } };
  test.each([
    ['best_of below n', { best_of: 2, n: 3 }, 'best_of'],
    ['best_of with stream', { best_of: 2, stream: true }, 'best_of'],
    ['stream_options without stream', { stream_options: {} }, 'stream_options'],
    ['min_tokens above max_tokens', { min_tokens: 5, max_tokens: 4 }, 'min_tokens'],
    ['min_tokens above the default max_tokens', { min_tokens: 17 }, 'min_tokens'],
    ['prompt_logprobs with stream', { prompt_logprobs: 1, stream: true }, 'prompt_logprobs'],
    ['images with a suffix', { images: ['data:,'], suffix: 'b' }, 'images'],
    ['images with echoed logprobs', { images: ['data:,'], echo: true, logprobs: 1 }, 'images'],
    ['images with echo_last', { images: ['data:,'], echo_last: 2 }, 'images'],
    ['images with prompt_logprobs', { images: ['data:,'], prompt_logprobs: 0 }, 'images'],
    ['two truncations', { truncate_sequence: true, truncate_prompt_tokens: 5 }, 'truncate_sequence'],
    ['suffix with a grammar', { suffix: 'b', grammar: 'root ::= "a"' }, 'suffix'],
    ['suffix with echoed logprobs', { suffix: 'b', echo: true, logprobs: 1 }, 'echo'],
    ['suffix with echo_last', { suffix: 'b', echo_last: 1 }, 'echo'],
    ['two constraints', { grammar: 'root ::= "a"', json_schema: {} }, 'grammar'],
    [
      'two constraints of different systems',
      { guided_regex: 'a', response_format: { type: 'json_object' } },
      'response_format',
    ],
    [
      'a tool and a grammar',
      { tools: [tool], tool_choice: { type: 'function', function: { name: 'f' } }, regex: 'a' },
      'regex',
    ],
  ])('%s', (_, body, param) => {
    expect(refusal(body)).toMatchObject({ code: 'conflicting_parameters', param });
  });

  test('an empty suffix is a plain completion and contradicts nothing', () => {
    expect(parse({ suffix: '', grammar: 'root ::= "a"' }).generation.suffix).toBeNull();
  });
});

describe('bounds of account and deployment', () => {
  const bounds = { maxTokens: 100, sequences: 8 };

  test('more tokens than allowed are refused; without a number the bound holds', () => {
    expect(refusal({ max_tokens: 101 }, 'openai', bounds)).toMatchObject({
      code: 'integer_above_max_value',
      param: 'max_tokens',
    });
    expect(refusal({ n_predict: 101 }, 'openai', bounds)?.param).toBe('n_predict');
    expect(parse({ max_tokens: -1 }, 'openai', bounds).generation.maxTokens).toBe(100);
    expect(parse({}, 'llamacpp', bounds).generation.maxTokens).toBe(100);
    expect(parse({ max_tokens: 100 }, 'openai', bounds).generation.maxTokens).toBe(100);
  });

  test('prompts · max(n, best_of) is bounded', () => {
    const prompt = ['a', 'b', 'c', 'd'];
    expect(refusal({ prompt, n: 2 }, 'openai', bounds)).toBeNull();
    expect(refusal({ prompt, n: 3 }, 'openai', bounds)).toMatchObject({
      code: 'integer_above_max_value',
      param: 'n',
    });
    expect(refusal({ prompt, best_of: 3 }, 'openai', bounds)).toMatchObject({ param: 'best_of' });
    expect(refusal({ prompt: Array.from({ length: 9 }, () => 'a') }, 'openai', bounds)).toMatchObject({
      code: 'array_above_max_length',
      param: 'prompt',
    });
  });
});

describe('fields of other servers', () => {
  test('unknown ones travel on, service fields do not', () => {
    const { extra } = parse({
      samplers: ['top_k'],
      id_slot: 3,
      priority: 9,
      request_id: 'r',
      vllm_xargs: {},
      n: 1,
    });
    expect(extra).toEqual({ samplers: ['top_k'], id_slot: 3 });
  });

  test('a value nested beyond reason is refused, not passed on', () => {
    const deep = JSON.parse(`${'['.repeat(5_000)}${']'.repeat(5_000)}`);
    expect(refusal({ odd: deep })).toMatchObject({ code: 'invalid_value', param: 'odd' });
    expect(refusal({ json_schema: { items: deep } })).toMatchObject({ code: 'invalid_json_schema' });
  });

  test('a field called __proto__ is a field like any other', () => {
    expect(Object.keys(parse(JSON.parse('{"__proto__":{"stream":true}}')).extra)).toEqual(['__proto__']);
    expect(parse(JSON.parse('{"__proto__":{"stream":true}}')).answer.stream).toBe(false);
  });
});

describe('constraints', () => {
  const tool = { type: 'function', function: { name: 'f', strict: true, parameters: { type: 'object' } } };
  const schema = { type: 'integer' };
  test.each([
    ['grammar text', { grammar: 'root ::= "a"' }, { type: 'gbnf', value: 'root ::= "a"' }],
    ['guided_grammar', { guided_grammar: 'root ::= "a"' }, { type: 'gbnf', value: 'root ::= "a"' }],
    ['ebnf', { ebnf: 'root ::= "a"' }, { type: 'gbnf', value: 'root ::= "a"' }],
    ['grammar of type regex', { grammar: { type: 'regex', value: 'a' } }, { type: 'regex', value: 'a' }],
    [
      'grammar of type lark',
      { grammar: { type: 'lark', value: 'start: "a"' } },
      { type: 'lark', value: 'start: "a"' },
    ],
    [
      "llguidance's list with Lark",
      { grammar: { type: 'llguidance', value: { grammars: [{ lark_grammar: 'start: "a"' }] } } },
      { type: 'lark', value: 'start: "a"' },
    ],
    [
      "llguidance's list with a schema",
      { grammar: { type: 'llguidance', value: { grammars: [{ json_schema: schema }] } } },
      { type: 'json_schema', value: schema },
    ],
    [
      'grammar of type json_schema',
      { grammar: { type: 'json_schema', value: schema } },
      { type: 'json_schema', value: schema },
    ],
    [
      'structured_outputs.grammar',
      { structured_outputs: { grammar: 'root ::= "a"' } },
      { type: 'gbnf', value: 'root ::= "a"' },
    ],
    [
      'structured_outputs.json',
      { structured_outputs: { json: schema } },
      { type: 'json_schema', value: schema },
    ],
    ['structured_outputs.regex', { structured_outputs: { regex: 'a' } }, { type: 'regex', value: 'a' }],
    [
      'structured_outputs.json_object',
      { structured_outputs: { json_object: true } },
      { type: 'json_object' },
    ],
    ['guided_regex', { guided_regex: 'a' }, { type: 'regex', value: 'a' }],
    ['guided_json', { guided_json: schema }, { type: 'json_schema', value: schema }],
    [
      'response_format grammar',
      { response_format: { type: 'grammar', grammar: 'root ::= "a"' } },
      { type: 'gbnf', value: 'root ::= "a"' },
    ],
    ['json_schema', { json_schema: schema }, { type: 'json_schema', value: schema }],
    ['a schema as text', { guided_json: JSON.stringify(schema) }, { type: 'json_schema', value: schema }],
    ['json_object', { response_format: { type: 'json_object' } }, { type: 'json_object' }],
    [
      'json_object with a schema',
      { response_format: { type: 'json_object', schema } },
      { type: 'json_schema', value: schema },
    ],
    [
      'response_format json_schema',
      { response_format: { type: 'json_schema', json_schema: { name: 'n', schema } } },
      { type: 'json_schema', value: schema },
    ],
    ['choices', { guided_choice: ['a', 'b'] }, { type: 'choice', value: ['a', 'b'] }],
    ['structured choices', { structured_outputs: { choice: ['a'] } }, { type: 'choice', value: ['a'] }],
    ['regex', { regex: 'a+' }, { type: 'regex', value: 'a+' }],
    [
      'a forced strict function',
      { tools: [tool], tool_choice: { type: 'function', function: { name: 'f' } } },
      { type: 'json_schema', value: { type: 'object' } },
    ],
    ['response_format text', { response_format: { type: 'text' } }, null],
    ['no tools', { tools: [], tool_choice: 'none' }, null],
    ['null tools', { tools: null, tool_choice: 'auto' }, null],
  ])('%s', (_, body, constraint) => {
    expect(parse(body).generation.constraint).toEqual(constraint);
  });
});
