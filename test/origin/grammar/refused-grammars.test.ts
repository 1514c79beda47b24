import { describe, expect, it } from 'vitest';
import { compileProgram } from '../../../origin/grammar/compile.ts';
import type { WireConstraint } from '../../../shared/generation.ts';

const integer = { type: 'integer' };

/** Unsupported or malformed schemas. The message must name keyword and path. */
const SCHEMAS: readonly (readonly [name: string, schema: unknown, message: RegExp])[] = [
  [
    'a negation that cannot be expressed',
    { properties: { a: { not: { uniqueItems: true } } } },
    /^#\/properties\/a\/not\/uniqueItems: cannot be negated/,
  ],
  ['$recursiveRef', { items: { $recursiveRef: '#' } }, /^#\/items\/\$recursiveRef: the keyword/],
  [
    'a keyword where dynamic anchors lead',
    { $dynamicAnchor: 'b', items: { $id: 'x', $dynamicAnchor: 'b', minItems: -1 } },
    /^#\/items\/minItems: must be/,
  ],
  [
    'contains of many schemas',
    { allOf: Array.from({ length: 12 }, (_, minimum) => ({ contains: { ...integer, minimum } })) },
    /^#\/allOf\/0\/contains: positions times counts/,
  ],
  [
    'a typing error of a long keyword',
    { items: { additonalProperties: {} }, type: 'array' },
    /^#\/items\/additonalProperties: the keyword is unknown; write "additionalProperties"/,
  ],
  ['a typing error of a short keyword', { item: {}, type: 'array' }, /^#\/item: .* write "items"/],
  [
    'a POSIX class in a pattern',
    { properties: { a: { pattern: '[[:alpha:]]' } } },
    /^#\/properties\/a\/pattern: POSIX classes .*column 2/,
  ],
  ['a pattern with a syntax error', { pattern: '(' }, /^#\/pattern: The group is not closed/],
  [
    'oneOf that no value satisfies',
    { oneOf: [{ type: 'integer' }, { type: 'integer' }] },
    /^No text can match/,
  ],
  [
    'JSON content whose items must differ',
    {
      properties: {
        a: {
          contentMediaType: 'application/json',
          contentSchema: { type: 'array', uniqueItems: true },
        },
      },
    },
    /^#\/properties\/a: the contents of a string cannot have items/,
  ],
  ['a remote reference', { $ref: 'https://x.example/schema' }, /^#\/\$ref: cannot be resolved/],
  ['a dangling reference', { $ref: '#/$defs/a' }, /^#\/\$ref: points to nothing/],
  ['a reference to itself', { $ref: '#' }, /^#: the reference leads back to itself/],
  ['an unknown type', { type: 'float' }, /^#\/type: must be one of/],
  ['a negative length', { minLength: -1 }, /^#\/minLength: must be a non-negative integer, received -1/],
  [
    'a length that is text',
    { type: 'string', maxLength: '3' },
    /^#\/maxLength: must be a non-negative integer, received "3"/,
  ],
  [
    'required that is not an array',
    { type: 'object', required: true },
    /^#\/required: must be an array of strings/,
  ],
  ['an empty enum', { enum: [] }, /No text can match/],
  [
    'a property that is not a schema',
    { type: 'object', properties: { a: 1 } },
    /^#\/properties\/a: a schema must be an object or a boolean, received 1/,
  ],
  ['false', false, /No text can match/],
  ['types that exclude each other', { allOf: [{ type: 'string' }, integer] }, /No text can match/],
  ['a minimum above the maximum', { type: 'integer', minimum: 2, maximum: 1 }, /No text can match/],
  [
    'an endless value',
    { type: 'object', properties: { a: { $ref: '#' } }, required: ['a'] },
    /No text can match/,
  ],
  [
    'a bound beyond the range of numbers',
    '{"type": "integer", "maximum": 1e400}',
    /^#\/maximum: must be a finite number/,
  ],
  [
    'a count that is no integer',
    '{"type": "string", "maxLength": 3.00000000000000000001}',
    /^#\/maxLength: must be a non-negative integer/,
  ],
  ['a number of too many digits', `{"minimum": 0.${'1'.repeat(1000)}}`, /at most 1000 are allowed/],
  [
    'five negations that each need an undeclared property',
    {
      type: 'object',
      allOf: [...'abcde'].map((letter) => ({ not: { propertyNames: { pattern: `^[^${letter}]*$` } } })),
    },
    /at most 4 negations may each need an undeclared property/,
  ],
  ['text that is not JSON', '{"type":', /not valid JSON/],
];

const GRAMMARS: readonly (readonly [name: string, source: string, message: RegExp])[] = [
  ['no root', 'a ::= "b"', /no rule named "root"/],
  ['undefined rule', 'root ::= "a"\n  b', /Expected "::="|"b" is used but not defined/],
  [
    'undefined rule in a group',
    'root ::= ("a" | missing)',
    /Rule "missing" is used but not defined at line 1, column 17/,
  ],
  ['missing ::=', 'root = "a"', /Expected "::=" at line 1, column 6/],
  ['unclosed literal', 'root ::= "a', /Unexpected end of the grammar/],
  ['unclosed class', 'root ::= [a', /Unexpected end of the grammar/],
  ['unclosed group', 'root ::= ("a"', /Expected "\)"/],
  ['nothing to repeat', 'root ::= *', /Nothing to repeat before the quantifier at line 1, column 10/],
  ['unknown escape', 'root ::= "\\q"', /Unknown escape "\\q"/],
  ['short hexadecimal', 'root ::= "\\x4"', /Expected 2 hexadecimal digits/],
  ['beyond Unicode', 'root ::= "\\U00110000"', /not a Unicode scalar value/],
  ['empty class', 'root ::= []', /empty/],
  ['reversed range', 'root ::= [z-a]', /reversed/],
  ['reversed counts', 'root ::= "a"{3,2}', /reversed/],
  ['a minimum beyond the limit', 'root ::= "a"{2001,}', /More than 2000 required repetitions/],
  ['counts beyond the limit', 'root ::= "a"{0,5001}', /More than 5000 repetitions/],
  ['empty counts', 'root ::= "a"{}', /Expected a number/],
  [
    'a negated name',
    'root ::= !<think>',
    /A negated token needs its id, as in !<\[10\]> at line 1, column 11/,
  ],
  ['an incomplete token', 'root ::= <[1 0]>', /Expected a token, as in <name> or <\[10\]>/],
  ['a token id beyond 24 bits', 'root ::= <[16777216]>', /Token ids are at most 16777215/],
  ['endless recursion', 'root ::= "a" root', /No text can match/],
  ['second line', 'root ::= "a"\nb := "c"', /at line 2, column 3/],
];

function fault(wire: WireConstraint): unknown {
  try {
    compileProgram(wire);
  } catch (error) {
    return error;
  }
  return null;
}

describe('refuses a schema that cannot be enforced exactly, naming keyword and path', () => {
  it.each(SCHEMAS)('%s', (_name, schema, message) => {
    expect(fault({ type: 'json_schema', value: schema })).toMatchObject({
      code: 'invalid_json_schema',
      status: 400,
      param: 'json_schema',
      message: expect.stringMatching(message),
    });
  });
});

describe('refuses an invalid GBNF grammar, naming the position', () => {
  it.each(GRAMMARS)('%s', (_name, source, message) => {
    expect(fault({ type: 'gbnf', value: source })).toMatchObject({
      code: 'invalid_grammar',
      status: 400,
      param: 'grammar',
      message: expect.stringMatching(message),
    });
  });
});
