import { describe, expect, test } from 'vitest';
import { parse, refusal } from './parsing.ts';

describe('fields of other servers', () => {
  test('passes unknown scalars and lists of scalars on', () => {
    expect(parse({ samplers: ['top_k'], n_keep: 3, n: 1 }).extra).toEqual({ samplers: ['top_k'], n_keep: 3 });
  });

  test('does not pass unknown objects on, which may carry any field', () => {
    const hidden = { extra_body: { priority: 1 }, extra_headers: { a: 'b' }, plugins: [{ id: 'web' }] };
    expect(parse({ ...hidden, nested: [['a']] }).extra).toEqual({});
  });

  test.each([
    ['a place in the queue', { priority: -9, request_id: 'r', rid: 'r', vllm_xargs: {} }],
    ['a slot', { id_slot: 3, slot_id: 3 }],
    ['a machine to fetch KV from', { kv_transfer_params: { remote_host: 'x' }, bootstrap_host: 'x' }],
    ['an address that receives the key', { api_base: 'http://x', base_url: 'http://x', api_key: 'k' }],
    [
      'another model',
      { models: ['dear'], model_list: [], fallbacks: ['dear'], provider: {}, route: 'fallback' },
    ],
    ['an adapter', { lora: [], lora_path: '/x', lora_request: {}, adapter_id: 'x' }],
    ['code', { custom_logit_processor: 'x', logits_processors: ['os.system'] }],
    ['a more expensive tier', { service_tier: 'priority' }],
    ['the answer, or the number of calls', { mock_response: 'x', num_retries: 9 }],
  ])('does not let callers choose %s', (_, fields) => {
    expect(parse(fields).extra).toEqual({});
  });

  test('passes sampling fields on unchanged, even with neutral values', () => {
    const sent = { top_k: 0, min_p: 0, repetition_penalty: 1, repeat_last_n: -1, mirostat: 0 };
    expect(parse({ ...sent, xtc_probability: null, typ_p: 1 }).extra).toEqual({
      ...sent,
      typical_p: 1,
    });
  });

  test.each([
    ['llama.cpp', { json_schema: { type: 'integer' } }],
    ['vLLM', { structured_outputs: { json: { type: 'integer' } } }],
    ['vLLM of old', { guided_regex: 'a+' }],
    ['SGLang', { ebnf: 'root ::= "a"' }],
    ['mistral.rs', { grammar: { type: 'regex', value: 'a+' } }],
    ['Fireworks', { response_format: { type: 'grammar', grammar: 'root ::= "a"' } }],
  ])('passes a constraint on under the name that %s knows', (_, constraint) => {
    expect(parse(constraint).extra).toEqual(constraint);
  });

  test('does not pass on fields that constrain nothing', () => {
    const nothing = { response_format: { type: 'text' }, tools: [], tool_choice: 'none', grammar: '' };
    expect(parse(nothing).extra).toEqual({});
  });

  test('does not pass on fields that other servers read differently', () => {
    expect(parse({ seed: -1, logit_bias: [[5, false]], use_beam_search: false }).extra).toEqual({});
  });

  test('rejects a schema that nests too deep', () => {
    const deep = JSON.parse(`${'['.repeat(5_000)}${']'.repeat(5_000)}`);
    expect(refusal({ json_schema: { items: deep } })).toMatchObject({ code: 'invalid_json_schema' });
  });

  test('treats __proto__ as an ordinary field', () => {
    expect(Object.keys(parse(JSON.parse('{"__proto__":["stream"]}')).extra)).toEqual(['__proto__']);
    expect(parse(JSON.parse('{"__proto__":{"stream":true}}')).response.stream).toBe(false);
  });
});
