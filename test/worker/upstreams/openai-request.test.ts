import { expect, test } from 'vitest';
import type { Flavor } from '../../../worker/upstreams/flavors.ts';
import { openAiBody } from '../../../worker/upstreams/openai-request.ts';
import { request } from '../../support/generation-request.ts';

const EXTRA = { top_k: 5, odd: 1, prompt_logprobs: 2, n_keep: 3 };

const bodyFor = (flavor: Flavor, changes: Parameters<typeof request>[0] = {}, extra: object = EXTRA) =>
  openAiBody(request(changes), {
    ...{ extra: { ...extra }, tokensAsIds: false, model: 'theirs', contextLength: 2048 },
    ...{ flavor, cacheSalt: null, user: null },
  });

test.each<[Flavor, readonly string[]]>([
  ['generic', ['top_k', 'odd', 'prompt_logprobs', 'n_keep']],
  ['vllm', ['top_k', 'prompt_logprobs']],
  ['llamacpp', ['top_k', 'n_keep']],
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

test('a JSON Schema goes to gateways as response_format only', () => {
  const constraint = { type: 'json_schema', value: { type: 'integer' } } as const;
  for (const flavor of ['litellm', 'openrouter'] as const) {
    const body = bodyFor(flavor, { constraint });
    expect(body).toMatchObject({ response_format: { type: 'json_schema' } });
    expect(body).not.toHaveProperty('json_schema');
  }
});
