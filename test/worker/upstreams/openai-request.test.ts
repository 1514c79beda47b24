import { expect, test } from 'vitest';
import { openAiBody } from '../../../worker/upstreams/openai-request.ts';
import type { Flavor } from '../../../worker/upstreams/upstream-config.ts';
import { request } from '../../support/generation-request.ts';

const NOTHING_SHOWN = { echo: false, echoLast: null, promptLogprobs: null };

const EXTRA = { top_k: 5, odd: 1, prompt_logprobs: 2, n_keep: 3 };

const bodyFor = (flavor: Flavor, changes: Parameters<typeof request>[0] = {}, extra: object = EXTRA) =>
  openAiBody(request(changes), {
    extra: { ...extra },
    tokensAsIds: false,
    shown: NOTHING_SHOWN,
    model: 'theirs',
    contextLength: 2048,
    flavor,
    cacheNamespace: null,
    user: null,
  });

test.each<[Flavor, readonly string[]]>([
  ['generic', ['top_k', 'odd', 'prompt_logprobs', 'n_keep']],
  ['vllm', ['top_k', 'prompt_logprobs']],
  ['llm-d', ['top_k', 'prompt_logprobs']],
  ['llamacpp', ['top_k', 'n_keep']],
  ['continuo', ['top_k', 'odd', 'prompt_logprobs', 'n_keep']],
  ['litellm', ['top_k']],
  ['openrouter', ['top_k']],
])('a server of the flavor %s gets no other unknown fields than %j', (flavor, names) => {
  const body = bodyFor(flavor);
  expect(Object.keys(EXTRA).filter((name) => Object.hasOwn(body, name))).toEqual(names);
});

const regex = { type: 'regex', value: 'a+', strength: 1 } as const;

test('a regex goes to vLLM, and is refused before gateways that would ignore it', () => {
  expect(bodyFor('vllm', { constraint: regex })).toMatchObject({ structured_outputs: { regex: 'a+' } });
  for (const flavor of ['litellm', 'openrouter'] as const)
    expect(() => bodyFor(flavor, { constraint: regex })).toThrow(/cannot follow this constraint/);
});

test('a JSON Schema goes to OpenRouter as response_format, and to LiteLLM inside of extra_body', () => {
  const constraint = { type: 'json_schema', value: { type: 'integer' } } as const;
  const format = { response_format: { type: 'json_schema' } };
  expect(bodyFor('openrouter', { constraint })).toMatchObject(format);
  const wrapped = bodyFor('litellm', { constraint }, {});
  expect(wrapped).toMatchObject({ extra_body: format });
  for (const name of ['response_format', 'json_schema']) expect(wrapped).not.toHaveProperty(name);
});

test('another Continuo gets a constraint once', () => {
  const constraint = { type: 'json_schema', value: {} } as const;
  const sent = bodyFor('continuo', { constraint }, { guided_json: {} });
  expect(Object.keys(sent).filter((name) => /json|response|structured/.test(name))).toEqual(['guided_json']);
  expect(bodyFor('continuo', { constraint }, {})).toHaveProperty('response_format');
});

test.each([
  ['logprobs', { topLogprobs: 1 }],
  ['n', { choices: 2 }],
  ['prompt', { prompts: ['a', 'b'] }],
])('a stream with %s is refused before LiteLLM, whose streams lose it', (param, changes) => {
  expect(() => bodyFor('litellm', { stream: true, ...changes })).toThrow(expect.objectContaining({ param }));
  expect(bodyFor('litellm', { stream: false, ...changes })).toHaveProperty('prompt');
  expect(bodyFor('vllm', { stream: true, ...changes })).toHaveProperty('prompt');
});

test('rows of logprobs are refused before every other server', () => {
  const logprobRows = { encoding: 'float32', prompt: false, maxCharacters: 1 } as const;
  for (const flavor of ['continuo', 'generic', 'vllm'] as const) {
    const refused = expect.objectContaining({ param: 'logprobs_format' });
    expect(() => bodyFor(flavor, { topLogprobs: 0, logprobRows })).toThrow(refused);
  }
});

test('stops by pattern, banned phrases, healing and plain text go to another Continuo, and are refused before other servers', () => {
  const fields = {
    stop_regex: { stopRegex: ['a+'] },
    token_healing: { tokenHealing: true },
    parse_special: { plainText: true },
    banned_phrases: { bannedPhrases: ['a', { regex: 'b+' }] },
  };
  for (const [name, changes] of Object.entries(fields)) {
    expect(bodyFor('continuo', changes)).toHaveProperty(name);
    for (const flavor of ['generic', 'vllm', 'llamacpp', 'openrouter'] as const) {
      expect(() => bodyFor(flavor, changes)).toThrow(expect.objectContaining({ param: name }));
    }
  }
});
