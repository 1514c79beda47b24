import { describe, expect, test } from 'vitest';
import { parse, refusal } from './parsing.ts';

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

  test('sampling fields travel on as they were sent: a value that is neutral here may be no server’s default', () => {
    const sent = { top_k: 0, min_p: 0, repetition_penalty: 1, repeat_last_n: -1, mirostat: 0 };
    expect(parse({ ...sent, xtc_probability: null, typ_p: 1 }).extra).toEqual({
      ...sent,
      typical_p: 1,
    });
  });

  test('what other servers spell otherwise does not travel on', () => {
    expect(parse({ seed: -1, logit_bias: [[5, false]], use_beam_search: false }).extra).toEqual({});
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
