import { describe, expect, test } from 'vitest';
import { BOUNDS, parse, refusal } from './parsing.ts';

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
      "nulls in llguidance's list",
      {
        grammar: {
          type: 'llguidance',
          value: { grammars: [{ name: null, lark_grammar: null, json_schema: schema }] },
        },
      },
      { type: 'json_schema', value: schema },
    ],
    [
      "nulls in llguidance's list with Lark",
      {
        grammar: {
          type: 'llguidance',
          value: { grammars: [{ lark_grammar: 'start: "a"', json_schema: null }] },
        },
      },
      { type: 'lark', value: 'start: "a"' },
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
    ['an empty grammar', { grammar: '' }, null],
    [
      'an empty grammar with a schema',
      { grammar: '', json_schema: schema },
      { type: 'json_schema', value: schema },
    ],
    ['no tools', { tools: [], tool_choice: 'none' }, null],
    ['null tools', { tools: null, tool_choice: 'auto' }, null],
    ['tools of which none is to be called', { tools: [tool], tool_choice: 'none' }, null],
    ['a boolean as a schema', { json_schema: true }, { type: 'json_schema', value: true }],
  ])('%s', (_, body, constraint) => {
    expect(parse(body).generation.constraint).toEqual(constraint);
  });

  const SCHEMA = '{"type":"integer"}';
  test.each([
    [{ regex: 'a+', guided_regex: 'a+', structured_outputs: { regex: 'a+' } }],
    [{ grammar: { type: 'regex', value: 'a+' }, regex: 'a+' }],
    [{ grammar: 'root ::= "a"', guided_grammar: 'root ::= "a"', ebnf: 'root ::= "a"' }],
    [{ ebnf: 'root ::= "a"', response_format: { type: 'grammar', grammar: 'root ::= "a"' } }],
    [{ json_schema: schema, guided_json: SCHEMA, structured_outputs: { json: schema } }],
    [{ guided_json: schema, response_format: { type: 'json_schema', json_schema: { schema: SCHEMA } } }],
    [{ guided_choice: ['a'], structured_outputs: { choice: ['a'] } }],
    [{ response_format: { type: 'json_object' }, structured_outputs: { json_object: true } }],
  ])('equal values under several names are one constraint: %j', (body) => {
    const [[name, value]] = Object.entries(body) as [[string, unknown]];
    expect(parse(body).generation.constraint).toEqual(parse({ [name]: value }).generation.constraint);
  });

  test('different values are refused, and the error names the two fields that differ', () => {
    const error = refusal({ regex: 'a', guided_regex: 'a', structured_outputs: { regex: 'b' } });
    expect(error).toMatchObject({ code: 'conflicting_parameters', param: 'guided_regex' });
    expect(error?.message).toContain("'guided_regex' and 'structured_outputs.regex'");
  });

  test.each([
    ...['grammar', 'guided_grammar', 'ebnf', 'regex', 'guided_regex', 'json_schema', 'guided_json'].map(
      (field) => ({ [field]: '' }),
    ),
    { structured_outputs: { json: '', regex: '', grammar: '' } },
  ])('an empty text is no constraint: %j', (body) => {
    expect(parse(body)).toEqual({ ...parse({}), extra: expect.anything() });
    expect(parse({ ...body, guided_choice: ['a'] }).generation.constraint).toEqual({
      type: 'choice',
      value: ['a'],
    });
  });

  test("the fields for a schema's objects win over the tenant's defaults", () => {
    const styleOf = (fields: object, defaults: object) =>
      parse({ json_schema: schema, ...fields }, 'openai', { ...BOUNDS, ...defaults }).generation.constraint;
    const plain = { type: 'json_schema', value: schema };
    const both = { openObjects: true, anyKeyOrder: true };
    expect(styleOf({}, {})).toEqual(plain);
    expect(styleOf({}, both)).toEqual({ ...plain, ...both });
    expect(styleOf({ open_objects: null, any_key_order: false }, both)).toEqual({
      ...plain,
      openObjects: true,
    });
    expect(styleOf({ open_objects: false, any_key_order: null }, both)).toEqual({
      ...plain,
      anyKeyOrder: true,
    });
    expect(styleOf({ open_objects: true, any_key_order: true }, {})).toEqual({ ...plain, ...both });
    expect(parse({ regex: 'a' }, 'openai', { ...BOUNDS, ...both }).generation.constraint).toEqual({
      type: 'regex',
      value: 'a',
    });
  });

  test.each([
    ['as text', { guided_json: '{"const": {"a": [1e400]}}' }, 'guided_json'],
    ['as an object', { json_schema: { enum: [Number.POSITIVE_INFINITY] } }, 'json_schema'],
  ])('rejects a schema %s with an infinite number', (_, body, param) => {
    expect(refusal(body)).toMatchObject({ code: 'invalid_json_schema', param });
  });
});
