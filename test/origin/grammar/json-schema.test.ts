import { describe, expect, it } from 'vitest';
import { WorkBudget } from '../../../origin/grammar/automaton/work-budget.ts';
import { compileProgram } from '../../../origin/grammar/compile.ts';
import { jsonSchemaGrammar } from '../../../origin/grammar/json-schema/json-schema.ts';
import { GrammarRuntime } from '../../../origin/grammar/runtime/grammar-runtime.ts';
import { GrammarVocabulary } from '../../../origin/grammar/runtime/grammar-vocabulary.ts';
import { acceptsText } from '../../support/grammar/acceptance.ts';
import { ajvValidator } from '../../support/grammar/ajv-validator.ts';
import { firstDifference } from '../../support/grammar/compare-masks.ts';
import { compileConstraint } from '../../support/grammar/compile-constraint.ts';
import { bnfOfGrammar } from '../../support/grammar/oracle/expression-to-bnf.ts';
import { allowedTokens } from '../../support/grammar/random-walk.ts';
import { smallVocabulary, tokenTable } from '../../support/grammar/vocabularies.ts';
import { randomFrom } from '../../support/random.ts';

const tokens = smallVocabulary();
const vocabulary = new GrammarVocabulary(tokens);

describe('whitespace between the parts of a JSON text', () => {
  const grammar = compileConstraint(
    { type: 'json_schema', value: { type: 'object', properties: { a: { type: 'array' } } } },
    vocabulary,
  );
  const break20 = `\n${' '.repeat(20)}`;
  const break10 = `\r\n${'\t'.repeat(10)}`;

  it.each([
    '{"a":[1,2]}',
    ' { "a": [ 1, 2 ] }',
    `${break20}{${break20}"a": [${break20}1,${break20}2${break20}]${break20}}`,
    `{${break10}"a": [${break10}1,${break10}2${break10}]${break10}}`,
  ])('may be any usual layout: %j', (text) => {
    expect(acceptsText(grammar, text, tokens)).toBe(true);
  });

  it.each([
    `{${break20} "a":[]}`,
    `{${break10}\t"a":[]}`,
    '{\n\n"a":[]}',
    '{  "a":[]}',
    '{\n \t"a":[]}',
    '{"a":\n[]}',
    '{"a" :[]}',
    '{"a":[1 ,2]}',
  ])('never goes beyond its bounds: %j', (text) => {
    expect(acceptsText(grammar, text, tokens)).toBe(false);
  });
});

it('tests multiples of a fraction exactly', () => {
  const value = { enum: [0.3, 0.7, 1.1, 0.35, 1e21, -2.3, 0], multipleOf: 0.1 };
  const grammar = compileConstraint({ type: 'json_schema', value }, vocabulary);
  const accepted = value.enum.filter((one) => acceptsText(grammar, JSON.stringify(one), tokens));
  expect(accepted).toEqual([0.3, 0.7, 1.1, 1e21, -2.3, 0]);
});

it.each([
  ['a label', `a@${'b'.repeat(64)}.org`],
  ['the part after the "@"', `a@${'b.'.repeat(32)}org`],
  ['the part before the "@"', `${'a'.repeat(65)}@b.org`],
])('generates no e-mail address with more than 64 characters in %s', (_, text) => {
  for (const value of [
    { format: 'email' },
    { format: 'email', maxLength: 254 },
    { format: 'idn-email', maxLength: 100 },
  ]) {
    const grammar = compileConstraint({ type: 'json_schema', value }, vocabulary);
    expect(acceptsText(grammar, JSON.stringify(text), tokens)).toBe(false);
    expect(acceptsText(grammar, '"a@b.org"', tokens)).toBe(true);
  }
});

const tagged = (key: string, value: object) => ({ properties: { [key]: value }, required: [key] });

it.each([
  ['a tag', (i: number) => tagged('kind', { const: `k${i}` }), (i: number) => ({ kind: `k${i}` })],
  [
    'listed tags in an object',
    (i: number) => tagged('head', tagged('kind', { enum: [i, `k${i}`] })),
    (i: number) => ({ head: { kind: i } }),
  ],
  ['a constant', (i: number) => ({ const: i }), (i: number) => i],
])('compiles a oneOf of 1,000 branches that differ by %s', (_, branch, written) => {
  const value = { oneOf: Array.from({ length: 1000 }, (_, i) => branch(i)) };
  const grammar = compileConstraint({ type: 'json_schema', value }, vocabulary);
  expect(acceptsText(grammar, JSON.stringify(written(7)), tokens)).toBe(true);
  expect(acceptsText(grammar, JSON.stringify(written(1000)), tokens)).toBe(false);
});

it('takes an empty enum for a value that does not exist', () => {
  const value = { properties: { a: { enum: [] }, b: { not: { enum: [] } } } };
  const grammar = compileConstraint({ type: 'json_schema', value }, vocabulary);
  expect(acceptsText(grammar, '{"b":1}', tokens)).toBe(true);
  expect(acceptsText(grammar, '{"a":1}', tokens)).toBe(false);
});

describe('a uri with a large maxLength', () => {
  /** A URI whose parts have their maximum lengths. */
  const longest = (maxLength: number, filling: string): string => {
    const value = { type: 'string', format: 'uri', maxLength };
    const constraint = compileConstraint({ type: 'json_schema', value }, vocabulary).start();
    let text = '';
    const take = (part: string): boolean => {
      for (const char of part) {
        const token = 4 + char.charCodeAt(0);
        if (((constraint.mask()[token >>> 5]! >>> (token & 31)) & 1) === 0) return false;
        constraint.accept(token);
        text += char;
      }
      return true;
    };
    take('"');
    for (const part of ['s', '://', 'h', ':', '1', '/', filling, '?', filling, '#', filling]) {
      const isSeparator = /[:/?#]/.test(part);
      while (take(part) && !isSeparator);
    }
    take('"');
    expect(constraint.accepting).toBe(true);
    return text.slice(1, -1);
  };

  it.each([301, 302, 303, 304, 500, 2083, 5000])('is never longer than %d, nor much shorter', (most) => {
    for (const filling of ['a', '%41']) {
      const text = longest(most, filling);
      expect(ajvValidator({ type: 'string', format: 'uri', maxLength: most })(text)).toBe(true);
      expect(text.length).toBeGreaterThan(0.9 * most);
    }
  });
});

const B = '9007199254740993';

describe('reads numbers that a double would round with all their digits', () => {
  it.each([
    [`{"type":"integer","minimum":${B},"maximum":${B}}`, [B], ['9007199254740992', '9007199254740994']],
    [
      '{"type":"integer","minimum":1000000000000000001,"maximum":1000000000000000063}',
      ['1000000000000000001', '1000000000000000063'],
      ['1000000000000000000', '1000000000000000064'],
    ],
    ['{"type":"integer","maximum":9223372036854775807}', ['9223372036854775807'], ['9223372036854775808']],
    ['{"type":"integer","minimum":-9223372036854775808}', ['-9223372036854775808'], ['-9223372036854775809']],
    [
      '{"type":"integer","minimum":0,"maximum":18446744073709551615}',
      ['18446744073709551615'],
      ['18446744073709551616', '28446744073709551615'],
    ],
    [
      '{"type":"integer","exclusiveMinimum":9007199254740992,"exclusiveMaximum":9007199254740994}',
      [B],
      ['9007199254740992', '9007199254740994'],
    ],
    ['{"type":"integer","minimum":-9007199254740993,"exclusiveMaximum":-9007199254740992}', [`-${B}`], [B]],
    [
      '{"type":"integer","minimum":9.007199254740993e15,"maximum":9007199254740993.0}',
      [B],
      ['9007199254740992'],
    ],
    [`{"type":"number","minimum":${B},"maximum":${B}}`, [B], ['9007199254740992']],
    ['{"type":"number","minimum":0,"maximum":0.1000000000000000001}', ['0.1'], ['0.2']],
    ['{"type":"number","minimum":0.1000000000000000001,"maximum":1}', ['0.2'], ['0.1']],
    [
      '{"type":"number","minimum":0.12345678901234567,"maximum":0.12345678901234568}',
      ['0.12345678901234567', '0.12345678901234568'],
      ['0.12345678901234566', '0.12345678901234569'],
    ],
    ['{"type":"number","minimum":1e-400}', ['0.1'], ['0']],
    [`{"const":${B}}`, [B], ['9007199254740992']],
    [`{"enum":[{"ids":[1,-${B}]},9007199254740992]}`, [`{"ids":[1,-${B}]}`, '9007199254740992'], [B]],
    [`{"enum":[${B},9007199254740994],"multipleOf":3}`, [B], ['9007199254740994']],
    [`{"enum":[${B},9007199254740995],"not":{"multipleOf":5}}`, [B], ['9007199254740995']],
    [`{"enum":[${B},9007199254740994],"maximum":${B}}`, [B], ['9007199254740994']],
    [
      `{"type":"integer","minimum":9007199254740990,"maximum":9007199254740995,"not":{"const":${B}}}`,
      ['9007199254740992', '9007199254740994'],
      [B],
    ],
    [
      `{"type":"integer","minimum":9007199254740990,"not":{"maximum":9007199254740992}}`,
      [B],
      ['9007199254740992'],
    ],
    [
      `{"type":"array","minItems":2,"maxItems":2,"items":{"type":"integer"},"if":{"prefixItems":[{"const":${B}}]},"then":{"items":{"const":${B}}}}`,
      [`[${B},${B}]`, '[9007199254740992,1]'],
      [`[${B},9007199254740992]`],
    ],
    [
      `{"oneOf":[{"type":"integer","maximum":9007199254740992},{"type":"integer","minimum":${B}}]}`,
      ['9007199254740992', B],
      [],
    ],
    [`{"oneOf":[{"const":${B}},{"const":9007199254740992}]}`, ['9007199254740992', B], ['9007199254740994']],
    [
      '{"type":"array","items":{"type":"integer"},"uniqueItems":true}',
      [`[${B},9007199254740992]`],
      [`[${B},${B}]`, `[9007199254740992,${B},9007199254740992]`],
    ],
    ['{"type":"string","maxLength":9223372036854775807,"minLength":1}', ['"a"'], ['""']],
    [
      `{"type":"string","contentMediaType":"application/json","contentSchema":{"enum":[${B}]}}`,
      [`"${B}"`],
      ['"9007199254740992"'],
    ],
    [
      `{"enum":["${B}","9007199254740992"],"contentMediaType":"application/json","contentSchema":{"minimum":${B}}}`,
      [`"${B}"`],
      ['"9007199254740992"'],
    ],
  ])('%s', (value, accepted, refused) => {
    const grammar = compileConstraint({ type: 'json_schema', value }, vocabulary);
    for (const text of accepted) expect(acceptsText(grammar, text, tokens), text).toBe(true);
    for (const text of refused) expect(acceptsText(grammar, text, tokens), text).toBe(false);
  });

  it.each([
    ['lark', `start: %json {"const": ${B}}`],
    ['lark', `{"grammars":[{"json_schema":{"const":${B}}}]}`],
  ] as const)('also in %s', (type, value) => {
    const grammar = compileConstraint({ type, value }, vocabulary);
    expect(acceptsText(grammar, B, tokens)).toBe(true);
  });
});

it('reads the exclusive bounds of draft 4', () => {
  const value = { type: 'integer', minimum: 1, exclusiveMinimum: true, maximum: 4, exclusiveMaximum: false };
  const grammar = compileConstraint({ type: 'json_schema', value }, vocabulary);
  const accepted = [0, 1, 2, 4, 5].filter((one) => acceptsText(grammar, JSON.stringify(one), tokens));
  expect(accepted).toEqual([2, 4]);
});

it('resolves a $dynamicRef by the schemas that led to it', () => {
  const of = (type: string) => ({ item: { $dynamicAnchor: 'item', type } });
  const value = {
    $id: 'https://x.test/lists',
    type: 'array',
    prefixItems: [{ $ref: 'integers' }, { $ref: 'texts' }, { $ref: 'list' }],
    items: false,
    $defs: {
      integers: { $id: 'integers', $ref: 'list', $defs: of('integer') },
      texts: { $id: 'texts', $ref: 'list', $defs: of('string') },
      list: { $id: 'list', type: 'array', items: { $dynamicRef: '#item' }, $defs: of('null') },
    },
  };
  const grammar = compileConstraint({ type: 'json_schema', value }, vocabulary);
  const accepts = (one: unknown) => acceptsText(grammar, JSON.stringify(one), tokens);
  expect([[], [[1, 2], ['a'], [null]], [[], []]].map(accepts)).toEqual([true, true, true]);
  expect([[['a']], [[], [1]], [[], [], ['a']], [[], [], [], []]].map(accepts)).not.toContain(true);
});

it('resolves a $dynamicRef beside a $ref, to an ordinary anchor', () => {
  const $defs = { low: { type: 'integer', minimum: 2 }, high: { $anchor: 'high', maximum: 4 } };
  const value = { $ref: '#/$defs/low', $dynamicRef: '#high', $defs };
  const grammar = compileConstraint({ type: 'json_schema', value }, vocabulary);
  expect(['1', '2', '4', '5'].map((text) => acceptsText(grammar, text, tokens))).toEqual([
    ...[false, true],
    ...[true, false],
  ]);
});

it('ignores keywords beside $ref up to draft 7', () => {
  const value = {
    $schema: 'http://json-schema.org/draft-07/schema#',
    definitions: { n: { type: 'integer' } },
    items: { $ref: '#/definitions/n', $id: '#a', type: 'string' },
    type: 'array',
  };
  const grammar = compileConstraint({ type: 'json_schema', value }, vocabulary);
  expect(acceptsText(grammar, '[1]', tokens)).toBe(true);
  expect(acceptsText(grammar, '["a"]', tokens)).toBe(false);
});

it.each(['prefixItems', 'dependentSchemas', 'minContains'])(
  'refuses a keyword of a later draft than the document names: %s',
  (keyword) => {
    const later = { [keyword]: { prefixItems: [{}], dependentSchemas: { a: {} }, minContains: 0 }[keyword] };
    const inside = { properties: { a: { ...later, contains: { const: 1 } } } };
    const compile = (draft: string) =>
      compileConstraint({ type: 'json_schema', value: { $schema: draft, ...inside } }, vocabulary);
    expect(() => compile('http://json-schema.org/draft-07/schema#')).toThrow(`#/properties/a/${keyword}`);
    expect(() => compile('https://json-schema.org/draft/2020-12/schema')).not.toThrow();
  },
);

describe('the style of objects', () => {
  const value = {
    type: 'object',
    properties: { a: { type: 'integer' }, b: { type: 'null' } },
    required: ['b'],
  };
  const accepts = (style: object, text: string): boolean =>
    acceptsText(compileConstraint({ type: 'json_schema', value, ...style }, vocabulary), text, tokens);

  it('by default allows declared properties in their order only', () => {
    expect(accepts({}, '{"a":1,"b":null}')).toBe(true);
    expect(accepts({}, '{"b":null,"a":1}')).toBe(false);
    expect(accepts({}, '{"b":null,"c":1}')).toBe(false);
  });

  it('allows other properties if objects are open, after the declared ones', () => {
    expect(accepts({ openObjects: true }, '{"b":null,"c":{"d":1}}')).toBe(true);
    expect(accepts({ openObjects: true }, '{"c":1,"b":null}')).toBe(false);
    expect(accepts({ openObjects: true }, '{"c":1}')).toBe(false);
  });

  it('allows each property once in any order', () => {
    expect(accepts({ anyKeyOrder: true }, '{"b":null,"a":1}')).toBe(true);
    expect(accepts({ anyKeyOrder: true }, '{"b":null,"b":null}')).toBe(false);
    expect(accepts({ anyKeyOrder: true }, '{"a":1}')).toBe(false);
    expect(accepts({ anyKeyOrder: true, openObjects: true }, '{"c":1,"b":null,"d":2,"a":1}')).toBe(true);
  });
});

describe('members in any order', () => {
  const style = { anyKeyOrder: true, openObjects: true };
  const integer = { type: 'integer' };
  const listed = { properties: { a: integer, b: { type: 'boolean' }, ab: integer }, required: ['b'] };

  it.each([
    { type: 'object', ...listed },
    { type: 'object', ...listed, minProperties: 2, maxProperties: 3, additionalProperties: { type: 'null' } },
    { type: 'object', ...listed, maxProperties: 1 },
    { type: 'object', additionalProperties: integer, minProperties: 2 },
    {
      type: 'object',
      ...listed,
      properties: { ...listed.properties, a: false },
      additionalProperties: false,
    },
    { type: 'array', items: { enum: [1, 12, 'a', [1]] }, uniqueItems: true, minItems: 2 },
  ])('have masks that equal the oracle in every bit: %j', (value) => {
    const grammar = compileConstraint({ type: 'json_schema', value, ...style }, vocabulary);
    const bnf = bnfOfGrammar(jsonSchemaGrammar(value, new WorkBudget(1e9), style));
    const options = { tokens, random: randomFrom(5), walks: 4, steps: 14 };
    expect(firstDifference(() => grammar.start(), bnf, options).difference).toBeNull();
  });

  it('may be many', () => {
    const names = Array.from({ length: 300 }, (_, i) => `p${i}`);
    const properties = Object.fromEntries(names.map((name) => [name, integer]));
    const value = { type: 'object', properties, required: names.slice(0, 2) };
    const grammar = compileConstraint({ type: 'json_schema', value, ...style }, vocabulary);
    const object = Object.fromEntries(names.map((name, i) => [name, i]).reverse());
    expect(acceptsText(grammar, JSON.stringify(object), tokens)).toBe(true);
    const { p1: _, ...incomplete } = object;
    expect(acceptsText(grammar, JSON.stringify(incomplete), tokens)).toBe(false);
  });

  it('continue after the parser states were dropped', () => {
    const value = { type: 'object', ...listed };
    const program = compileProgram({ type: 'json_schema', value, ...style });
    const limited = new GrammarRuntime(program, vocabulary, { states: 20 });
    for (const text of ['{"ab":1,"b":true,"a":2}', '{"b":true,"x":[{}],"a":2}'])
      expect(acceptsText(limited, text, tokens), text).toBe(true);
    expect(acceptsText(limited, '{"ab":1,"b":true,"ab":2}', tokens)).toBe(false);
  });
});

describe('items that must differ', () => {
  const arrays = (items: readonly unknown[], max: number, min = 0): unknown[][] => {
    const longer = (array: unknown[]): unknown[][] =>
      items.filter((item) => !array.includes(item)).map((item) => [...array, item]);
    let level: unknown[][] = [[]];
    const all = [level];
    for (let length = 0; length < max; length++) all.push((level = level.flatMap(longer)));
    return all.slice(min).flat();
  };
  const words = ['a', 'b', 'aa', 'ab', 'ba', 'bb'];
  const objects = arrays(['a', 'b', 'ab'], 3, 2).map((keys) =>
    Object.fromEntries(keys.map((key) => [key, 'a'])),
  );
  const keysOf = (one: unknown): string =>
    Object.keys(one as object)
      .sort()
      .join();

  it.each([
    { items: { type: 'string', pattern: '^[ab]{1,2}$' }, maxItems: 3, values: arrays(words, 3) },
    {
      items: { type: 'string', pattern: '^(abba|abab)$' },
      minItems: 1,
      values: arrays(['abba', 'abab'], 2, 1),
    },
    { items: { type: 'string', maxLength: 0 }, values: [[], ['']] },
    {
      items: { type: 'integer', minimum: 1, maximum: 12 },
      maxItems: 2,
      values: arrays([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12], 2),
    },
    {
      items: {
        type: 'object',
        properties: { a: { enum: ['x', 'xy'] }, b: { type: 'null' } },
        required: ['a'],
      },
      values: arrays([{ a: 'x' }, { a: 'x', b: null }, { a: 'xy' }, { a: 'xy', b: null }], 4),
    },
    {
      items: {
        type: 'object',
        patternProperties: { '^(a|b|ab)$': { const: 'a' } },
        additionalProperties: false,
        minProperties: 2,
      },
      maxItems: 2,
      values: arrays(objects, 2).filter((list) => new Set(list.map(keysOf)).size === list.length),
    },
    {
      items: {
        type: 'array',
        items: { type: 'string', pattern: '^(a|ab|b)$' },
        uniqueItems: true,
        maxItems: 2,
      },
      maxItems: 2,
      values: arrays(arrays(['a', 'ab', 'b'], 2), 2),
    },
  ])('have the masks of all arrays without a repeated item, in every bit: $items', ({ values, ...rest }) => {
    const value = { type: 'array', uniqueItems: true, ...rest };
    const grammar = compileConstraint({ type: 'json_schema', value }, vocabulary);
    // An `enum` would leave out objects that differ only in the order of their keys.
    const anyOf = values.map((one) => ({ const: one }));
    const bnf = bnfOfGrammar(jsonSchemaGrammar({ anyOf }, new WorkBudget(1e9)));
    const options = { tokens, random: randomFrom(7), walks: 12, steps: 14 };
    expect(firstDifference(() => grammar.start(), bnf, options).difference).toBeNull();
  });

  const distinct = (items: object) => ({ type: 'array', uniqueItems: true, items });
  const letters = distinct({ type: 'string', pattern: '^[ab]$' });

  it.each([
    { value: letters, text: '["' },
    { value: distinct(letters), text: '[["' },
  ])('differ within one token: $text', ({ value, text }) => {
    const table = tokenTable(['a",', 'b","a",', 'a","a","b']);
    const grammar = compileConstraint({ type: 'json_schema', value }, new GrammarVocabulary(table));
    const constraint = grammar.start();
    constraint.acceptBytes(Buffer.from(text));
    expect(allowedTokens(constraint.mask())).toEqual([0]);
  });

  it('are equal if their numbers or texts are, however written', () => {
    const value = { type: 'array', uniqueItems: true };
    const grammar = compileConstraint({ type: 'json_schema', value }, vocabulary);
    for (const text of [
      '[1,1.0]',
      '[100, 1e2]',
      '[0,-0]',
      '["a","\\u0061"]',
      '[{"a":1,"b":2},{ "b":2.0,"a":1}]',
    ])
      expect(acceptsText(grammar, text, tokens), text).toBe(false);
  });

  it('are keys if an object must have several undeclared ones', () => {
    const few = { type: 'object', patternProperties: { '^[ab]$': true }, additionalProperties: false };
    const grammar = compileConstraint(
      { type: 'json_schema', value: { ...few, minProperties: 2 } },
      vocabulary,
    );
    const keys = ['a', 'b', 'c'];
    for (const [first, second] of keys.flatMap((one) => keys.map((other) => [one, other]))) {
      const isValid = first !== second && first !== 'c' && second !== 'c';
      const text = `{"${first}":{"a":1,"a":[2]},"${second}":"${first}"}`;
      expect(acceptsText(grammar, text, tokens), text).toBe(isValid);
    }
    const escaped = compileConstraint(
      { type: 'json_schema', value: { type: 'object', minProperties: 2 } },
      vocabulary,
    );
    expect(acceptsText(escaped, '{"a":1,"\\u0061":2,"b":3}', tokens)).toBe(false);
    expect(acceptsText(escaped, '{"a":1,"b":{"a":1,"a":1}}', tokens)).toBe(true);
    const constraint = grammar.start();
    constraint.acceptBytes(Buffer.from('{"a":1,'));
    expect(constraint.allowsBytes(Buffer.from('"a'))).toBe(false);
    expect(constraint.allowsBytes(Buffer.from('"b'))).toBe(true);
  });

  it('still differ after the parser states were dropped, and after a return to an earlier place', () => {
    const value = { type: 'array', items: { type: 'integer' }, uniqueItems: true };
    const limited = new GrammarRuntime(compileProgram({ type: 'json_schema', value }), vocabulary, {
      states: 8,
    });
    expect(acceptsText(limited, '[12,3,123]', tokens)).toBe(true);
    expect(acceptsText(limited, '[12,3,12]', tokens)).toBe(false);
    const constraint = limited.start();
    constraint.acceptBytes(Buffer.from('[1'));
    const back = constraint.save();
    constraint.acceptBytes(Buffer.from(',2,'));
    back();
    expect(constraint.allowsBytes(Buffer.from(',1,'))).toBe(false);
    expect(constraint.allowsBytes(Buffer.from(',2]'))).toBe(true);
  });
});

describe('keywords that no specification knows', () => {
  const ignored = (value: unknown): readonly string[] =>
    compileProgram({ type: 'json_schema', value }).ignoredKeywords;

  it('are named with unknown formats', () => {
    const value = { type: 'array', items: { type: 'string', format: 'name', javaType: 'String' }, self: {} };
    expect(ignored(value)).toEqual(['self', 'format=name', 'javaType']);
    expect(ignored({ type: 'string', title: 'a', 'x-b': 1, format: 'date' })).toEqual([]);
  });

  it('are named with content that cannot be enforced', () => {
    const json = { contentMediaType: 'application/json', contentSchema: { type: 'array' } };
    expect(ignored({ type: 'string', ...json })).toEqual([]);
    expect(ignored({ type: 'string', ...json, contentEncoding: 'base64' })).toEqual([
      'contentMediaType=application/json',
      'contentSchema',
    ]);
    expect(ignored({ allOf: [json, { maxLength: 3 }] })).toEqual(['contentMediaType=application/json']);
    expect(ignored({ contentEncoding: 'gzip', contentMediaType: 'a/b' })).toEqual([
      'contentEncoding=gzip',
      'contentMediaType=a/b',
    ]);
    expect(ignored({ 'x-guidance': { item_separator: ',' } })).toEqual(['x-guidance.item_separator']);
  });

  it('include what a lenient schema asks for and nothing can enforce', () => {
    const value = {
      'x-guidance': { lenient: true },
      type: 'array',
      $recursiveRef: '#',
      item: {},
    };
    expect(ignored(value)).toEqual(['$recursiveRef', 'item']);
  });
});

it('excludes enumerated numbers beyond the range of doubles', () => {
  const grammar = compileConstraint({ type: 'json_schema', value: '{"enum": [1e400, 5]}' }, vocabulary);
  expect(acceptsText(grammar, '5', tokens)).toBe(true);
  expect(acceptsText(grammar, 'null', tokens)).toBe(false);
});
