/** A schema with valid values, whose canonical text must be accepted, and invalid values. */
export interface SchemaCase {
  readonly name: string;
  readonly schema: unknown;
  readonly valid: readonly unknown[];
  readonly invalid: readonly unknown[];
}

type Row = readonly [name: string, schema: unknown, valid: readonly unknown[], invalid: readonly unknown[]];

const object = (
  properties: Record<string, unknown>,
  required: readonly string[] = [],
  rest: object = {},
): object => ({
  type: 'object',
  properties,
  required,
  ...rest,
});
const S = { type: 'string' };
const I = { type: 'integer' };
const N = { type: 'number' };
const B = { type: 'boolean' };

const TYPES: readonly Row[] = [
  ['anything (true)', true, [null, 1, 'a', [1], { a: 1 }, true], []],
  ['anything (empty schema)', {}, [null, -1.5, '', [], {}, false], []],
  ['null', { type: 'null' }, [null], [0, 'null', false]],
  ['boolean', B, [true, false], [0, 'true', null]],
  ['integer', I, [0, 7, -3, 123456789], ['1', null, 1.5]],
  ['integer of 64 bits', I, [2 ** 62, -(2 ** 62), 9007199254740991], ['1']],
  ['64 bits above a bound', { ...I, minimum: 1 }, [2 ** 62, 1], [0, -(2 ** 62)]],
  ['number', N, [0, -1, 1.5, 100, 0.001, 1e21], ['1', null]],
  ['string', S, ['', 'a', 'é日😀', '"\\\n\u0000\u007f'], [1, null]],
  ['array', { type: 'array' }, [[], [1, 'a', [null]]], [{}, 'a']],
  ['object', { type: 'object' }, [{}, { a: { b: [] } }], [[], 'a']],
  ['two types', { type: ['string', 'null'] }, ['x', null], [1, true]],
  ['integer or number', { type: ['integer', 'number'] }, [1, 1.5], ['1']],
  ['all types but one', { type: ['null', 'boolean', 'number', 'string', 'array'] }, [1, [1], 'a'], [{}]],
  [
    'annotations alone',
    {
      title: 't',
      description: 'd',
      default: 1,
      examples: [1],
      $comment: 'c',
      deprecated: true,
      readOnly: true,
      'x-more': {},
      type: 'boolean',
    },
    [true],
    [1],
  ],
  ['implied object', { properties: { a: I }, required: ['a'] }, [{ a: 1 }], [{ a: 'x' }]],
  ['implied array', { items: I }, [[1]], [['x']]],
  ['implied string', { minLength: 2 }, ['ab'], ['a']],
  ['implied number', { minimum: 2 }, [2, 3.5], [1]],
];

const STRINGS: readonly Row[] = [
  ['minLength', { type: 'string', minLength: 2 }, ['ab', 'abc', 'é日'], ['', 'a', '😀']],
  ['maxLength', { type: 'string', maxLength: 2 }, ['', 'ab', '😀😀'], ['abc']],
  ['both lengths', { type: 'string', minLength: 2, maxLength: 3 }, ['ab', 'abc'], ['a', 'abcd']],
  ['exact length', { type: 'string', minLength: 3, maxLength: 3 }, ['abc'], ['ab', 'abcd']],
  ['empty string only', { type: 'string', maxLength: 0 }, [''], ['a']],
  ['long maxLength', { type: 'string', maxLength: 500 }, ['', 'a'.repeat(500)], ['a'.repeat(501)]],
  [
    'very long maxLength',
    { type: 'string', minLength: 3, maxLength: 65535 },
    ['abc', 'a'.repeat(3000)],
    ['ab'],
  ],
  ['lengths count escapes as one', { type: 'string', maxLength: 1 }, ['\n', '"', '\\'], ['ab']],
  ['pattern anywhere', { type: 'string', pattern: 'b' }, ['b', 'abc'], ['', 'ac']],
  ['pattern at the start', { type: 'string', pattern: '^ab' }, ['ab', 'abc'], ['cab']],
  ['pattern at the end', { type: 'string', pattern: 'ab$' }, ['ab', 'cab'], ['abc']],
  ['whole pattern', { type: 'string', pattern: '^[a-c]{2,3}$' }, ['ab', 'abc'], ['a', 'abcd', 'xy']],
  ['alternatives with anchors', { type: 'string', pattern: '^a|b$' }, ['a', 'ax', 'xb', 'b'], ['xa', 'bx']],
  [
    'anchors in groups',
    { type: 'string', pattern: '(^|-)a($|-)' },
    ['a', 'x-a', 'a-x', 'x-a-x'],
    ['xa', 'ax'],
  ],
  ['digits', { type: 'string', pattern: '^\\d{3}-\\d{4}$' }, ['555-1234'], ['5551234']],
  ['words', { type: 'string', pattern: '^\\w+(\\s\\w+)*$' }, ['a', 'a b_1'], [' a', 'é']],
  [
    'quotes and backslashes in a pattern',
    { type: 'string', pattern: '^["\\\\]+$' },
    ['"', '\\', '"\\'],
    ['a'],
  ],
  [
    'control characters in a pattern',
    { type: 'string', pattern: '^[\\x00-\\x1f]+$' },
    ['\n\t', '\u0001'],
    ['a'],
  ],
  ['negated class', { type: 'string', pattern: '^[^a]$' }, ['b', 'é', '😀', '\n'], ['a', 'bb']],
  ['dot', { type: 'string', pattern: '^.$' }, ['a', '😀'], ['\n', 'ab']],
  ['Unicode property', { type: 'string', pattern: '^\\p{Lu}\\p{Ll}+$' }, ['Ab', 'Éa'], ['ab', 'A']],
  ['Unicode escapes', { type: 'string', pattern: '^\\u00e9\\u{1F600}$' }, ['é😀'], ['e']],
  [
    'pattern and lengths',
    { type: 'string', pattern: '^a*$', minLength: 2, maxLength: 4 },
    ['aa', 'aaaa'],
    ['a', 'aaaaa', 'bb'],
  ],
  [
    'two patterns',
    { allOf: [{ type: 'string', pattern: '^a' }, { pattern: 'b$' }] },
    ['ab', 'axb'],
    ['a', 'b'],
  ],
  [
    'look-aheads at the start of a pattern',
    { type: 'string', pattern: '^(?=.*[A-Z])(?=.*\\d)(?![)|]|x)[^ ]{3,}$' },
    ['aB1', '1Bx', 'A|2'],
    ['ab1', 'AB', 'xA1', ')A1', 'A 1'],
  ],
  [
    'a look-ahead that ends with the text',
    { type: 'string', pattern: '^(?!(?:con|nul)$)[a-z]+$' },
    ['co', 'cons', 'a'],
    ['con', 'nul', ''],
  ],
  [
    'Pydantic’s Decimal',
    { anyOf: [{ type: 'number' }, { type: 'string', pattern: '^(?!^[-+.]*$)[+-]?0*\\d*\\.?\\d*$' }] },
    [1.5, '1.5', '-007.', '+.5'],
    ['', '+', '-.', '1.5.2', 'a'],
  ],
  [
    'an email as Zod writes it',
    {
      type: 'string',
      format: 'email',
      pattern:
        "^(?!\\.)(?!.*\\.\\.)([A-Za-z0-9_'+\\-\\.]*)[A-Za-z0-9_+-]@([A-Za-z0-9][A-Za-z0-9\\-]*\\.)+[A-Za-z]{2,}$",
    },
    ['a@b.co', "o'neil.x@mail.example.com"],
    ['.a@b.co', 'a..b@c.de', 'a@b.c', 'a#b@c.de'],
  ],
  [
    'date',
    { type: 'string', format: 'date' },
    ['2024-02-29', '1999-12-31', '2000-02-29'],
    ['2023-02-29', '1900-02-29', '2024-13-01', '2024-04-31', '24-01-01'],
  ],
  [
    'time',
    { type: 'string', format: 'time' },
    ['12:34:56Z', '23:59:59.123+05:30'],
    ['24:00:00Z', '12:34', '12:60:00Z'],
  ],
  [
    'date-time',
    { type: 'string', format: 'date-time' },
    ['2024-02-29T12:34:56Z', '2024-01-01T00:00:00.5-08:00'],
    ['2024-02-29', '2024-02-30T00:00:00Z'],
  ],
  [
    'duration',
    { type: 'string', format: 'duration' },
    ['P1D', 'PT1H30M', 'P1Y2M3DT4H5M6S', 'P2W', 'PT0S', 'P1M', 'PT1M'],
    ['P', 'PT', '1D', 'P1DT', 'P1W2D', 'P1H', 'P-1D'],
  ],
  [
    'hostname',
    { type: 'string', format: 'hostname' },
    [
      ...['localhost', 'a.example.com', 'x-1.de', 'my-svc.my-ns.svc.cluster.local'],
      `${'a'.repeat(63)}.${'b'.repeat(61)}`,
      `${'a'.repeat(63)}.ns.pod.svc.cluster.example.com`,
      `${'1.'.repeat(32)}ip6.arpa`,
      Array(4).fill('a'.repeat(61)).join('.'),
    ],
    ['-a', 'a-.b', 'a..b', 'a_b', '', `${'a'.repeat(64)}.b`, Array(4).fill('a'.repeat(63)).join('.')],
  ],
  [
    'hostname and maxLength',
    { type: 'string', format: 'hostname', maxLength: 16 },
    ['a.b.c.d.e.f.g.h', 'example-1.org'],
    ['a.b.c.d.e.f.g.h.i', 'a-'],
  ],
  [
    'hostname and a larger maxLength',
    { type: 'string', format: 'hostname', minLength: 2, maxLength: 128 },
    ['my-svc.my-ns.svc.cluster.local'],
    ['a', `${'a'.repeat(64)}.b`],
  ],
  [
    'email',
    { type: 'string', format: 'email' },
    ['a@b.co', "o'neil+x@mail.example.com", `${'a'.repeat(64)}@${'b'.repeat(60)}.org`],
    ['a', 'a@', '@b.co', 'a b@c.de'],
  ],
  [
    'email and a larger maxLength',
    { type: 'string', format: 'email', maxLength: 100 },
    ['a@b.co', `${'a'.repeat(49)}@${'b'.repeat(46)}.org`],
    [`${'a'.repeat(49)}@${'b'.repeat(47)}.org`],
  ],
  [
    'two negations that need an undeclared property',
    { type: 'object', allOf: [{ not: { additionalProperties: S } }, { not: { additionalProperties: I } }] },
    [{ a: true }, { a: 1, b: 'x' }, { a: 'x', b: 1, c: 2 }, { a: 1, b: 2, c: null }],
    [{}, { a: 1 }, { a: 'x', b: 'y' }],
  ],
  [
    'three negations that need an undeclared property',
    {
      type: 'object',
      allOf: ['a', 'b', 'c'].map((letter) => ({ not: { propertyNames: { pattern: `^[^${letter}]*$` } } })),
    },
    [{ abc: 1 }, { c: 1, ba: 2 }, { c: 1, a: 2, b: 3 }],
    [{}, { ab: 1 }, { a: 1, b: 2 }],
  ],
  [
    'uuid',
    { type: 'string', format: 'uuid' },
    ['123e4567-e89b-12d3-a456-426614174000'],
    ['123e4567e89b12d3a456426614174000', 'g23e4567-e89b-12d3-a456-426614174000'],
  ],
  [
    'uuid4, as Pydantic writes it',
    { type: 'string', format: 'uuid4' },
    ['123e4567-e89b-42d3-a456-426614174000'],
    ['123e4567-e89b-12d3-a456-426614174000', '123e4567-e89b-42d3-c456-426614174000'],
  ],
  ...['password', 'binary', 'path', 'file-path', 'directory-path'].map(
    (format): Row => [
      `a format that is a hint: ${format}`,
      { type: 'string', format, minLength: 1 },
      ['~/a b', '…', 'x'.repeat(400)],
      ['', 1, null],
    ],
  ),
  [
    'formats of numbers',
    { type: 'array', items: { type: 'integer', format: 'int64' }, maxItems: 2 },
    [[1, -42]],
    [['1'], [1.5]],
  ],
  [
    'ipv4',
    { type: 'string', format: 'ipv4' },
    ['0.0.0.0', '192.168.1.255'],
    ['256.1.1.1', '1.2.3', '01.2.3.4'],
  ],
  [
    'ipv6',
    { type: 'string', format: 'ipv6' },
    [
      '::',
      '::1',
      '1::',
      '2001:db8::8a2e:370:7334',
      '1:2:3:4:5:6:7:8',
      '::ffff:1.2.3.4',
      '1:2:3:4:5:6:7::',
      '::2:3:4:5:6:7:8',
    ],
    ['1:2:3', ':::', '1::2::3', '12345::', '1:2:3:4:5:6:7:8:9'],
  ],
  [
    'uri',
    { type: 'string', format: 'uri' },
    ['https://example.com/a?b=c#d', 'mailto:a@b.co', 'http://u@h:80/', 'file:///C:/a/b.js'],
    ['example.com', '//a', 'http://a b'],
  ],
  [
    'email and a usual maxLength',
    { type: 'string', format: 'email', maxLength: 254 },
    ['a@b.co', `${'a'.repeat(64)}@${'b'.repeat(60)}.com`],
    ['a@b', `${'a'.repeat(60)}@${'b'.repeat(60)}.${'c'.repeat(133)}`],
  ],
  [
    'Pydantic’s HttpUrl',
    { type: 'string', format: 'uri', minLength: 1, maxLength: 2083 },
    [
      'https://example.com:8080/a%20b/c.html?q=1&r=%C3%A9#top',
      'mailto:a@b.co',
      'a:b',
      `https://example.com/${'a/b-'.repeat(200)}?${'q=1&'.repeat(120)}#${'z'.repeat(200)}`,
    ],
    ['example.com', '', 'http://a b', 'http://a/%2', `http://a/${'x'.repeat(2075)}`],
  ],
  ['format and maxLength', { type: 'string', format: 'email', maxLength: 8 }, ['a@b.co'], ['abcdef@gh.com']],
  [
    'ipvanyinterface, as Pydantic writes it',
    { type: 'string', format: 'ipvanyinterface' },
    ['1.2.3.4', '1.2.3.4/32', '::1/128', '1::'],
    ['1.2.3', '1.2.3.4/33', '::1/129', '1.2.3.4/', ''],
  ],
  [
    'base64 content',
    { type: 'string', contentEncoding: 'base64', contentMediaType: 'image/png' },
    ['', 'QQ==', 'QUI=', 'QUJD'],
    ['Q', 'QQ', 'QR==', 'Q Q='],
  ],
  [
    'base16 content',
    { type: 'string', contentEncoding: 'base16', maxLength: 4 },
    ['', '0a', 'FF00'],
    ['0', '0g', 'FF0011', 1],
  ],
  ['7-bit content', { type: 'string', contentEncoding: '7bit' }, ['a\n'], ['é']],
  ['no base64', { type: 'string', not: { contentEncoding: 'base64' } }, ['Q', 'é'], ['QUJD', '']],
  [
    'JSON content',
    { type: 'string', contentMediaType: 'application/json' },
    ['1', '{"a":["x\\n", null]}', '"é\\\\"', '[\n  true\n]'],
    ['', '{', '{"a"}', "'a'", 1, { a: 1 }],
  ],
  [
    'JSON content of a schema',
    object({
      body: {
        type: 'string',
        contentMediaType: 'application/json',
        contentSchema: object({ a: I, b: { enum: ['x"y', 2] } }, ['a'], { additionalProperties: false }),
      },
    }),
    [{}, { body: '{"a":1}' }, { body: '{"a":1,"b":"x\\"y"}' }],
    [{ body: '{"a":"1"}' }, { body: '{"b":2}' }, { body: { a: 1 } }, { body: '{"a":1' }],
  ],
  [
    'JSON content within JSON content',
    {
      contentMediaType: 'application/json',
      contentSchema: {
        type: 'array',
        items: { type: 'string', contentMediaType: 'application/json', contentSchema: { const: 'a\n' } },
        maxItems: 2,
      },
    },
    ['[]', JSON.stringify([JSON.stringify('a\n')])],
    ['["a"]', JSON.stringify(['a\n']), JSON.stringify([JSON.stringify('a')]), '[[]]'],
  ],
  [
    'listed JSON content',
    {
      enum: ['1', '"a"', 'a', '', 7],
      contentMediaType: 'application/json',
      contentSchema: { type: 'integer' },
    },
    ['1', 7],
    ['"a"', 'a', ''],
  ],
  ['enum of strings', { enum: ['red', 'green', 'a"b', ''] }, ['red', 'a"b', ''], ['blue', 're']],
  ['enum of strings with a type', { type: 'string', enum: ['a', 'ab', 1] }, ['a', 'ab'], ['b']],
  ['const string', { const: 'x\n"' }, ['x\n"'], ['x']],
];

const NUMBERS: readonly Row[] = [
  ['minimum', { type: 'integer', minimum: 5 }, [5, 6, 10, 123], [4, 0, -5]],
  ['maximum', { type: 'integer', maximum: 120 }, [120, 0, -7, 99], [121, 1000]],
  ['exclusive minimum', { type: 'integer', exclusiveMinimum: 5 }, [6, 50], [5, 4]],
  ['exclusive maximum', { type: 'integer', exclusiveMaximum: 5 }, [4, -10], [5, 6]],
  ['range', { type: 'integer', minimum: 18, maximum: 99 }, [18, 42, 99], [17, 100, 1]],
  ['range over lengths', { type: 'integer', minimum: 7, maximum: 1234 }, [7, 10, 999, 1234], [6, 1235, 2000]],
  ['range around zero', { type: 'integer', minimum: -12, maximum: 34 }, [-12, -1, 0, 34], [-13, 35]],
  ['negative range', { type: 'integer', minimum: -120, maximum: -7 }, [-120, -50, -7], [-121, -6, 0, 7]],
  ['one value', { type: 'integer', minimum: 3, maximum: 3 }, [3], [2, 4]],
  ['non-negative', { type: 'integer', minimum: 0 }, [0, 1], [-1]],
  ['fractional bounds of an integer', { type: 'integer', minimum: 1.5, maximum: 4.5 }, [2, 4], [1, 5]],
  ['negative fractional bounds', { type: 'integer', minimum: -4.5, maximum: -1.5 }, [-4, -2], [-5, -1]],
  [
    'large bounds',
    { type: 'integer', minimum: 9007199254740991, maximum: 9007199254740992 },
    [9007199254740991],
    [9007199254740990],
  ],
  ['number minimum', { type: 'number', minimum: 0 }, [0, 0.5, 12.25], [-1, -0.5]],
  ['number maximum', { type: 'number', maximum: 1.5 }, [1.5, 1.49, -3, 0], [1.51, 2]],
  [
    'number between fractions',
    { type: 'number', minimum: 0.25, maximum: 0.75 },
    [0.25, 0.5, 0.75, 0.3],
    [0.24, 0.76, 0, 1],
  ],
  ['number above zero', { type: 'number', exclusiveMinimum: 0 }, [0.1, 1], [0, -1]],
  ['number below one', { type: 'number', minimum: 0, exclusiveMaximum: 1 }, [0, 0.999], [1, 1.5]],
  ['negative fractions', { type: 'number', minimum: -1.5, maximum: -0.5 }, [-1.5, -1, -0.5], [-1.6, -0.4, 0]],
  ['tiny bounds', { type: 'number', minimum: 1e-7, maximum: 1e-6 }, [], [0, 1, 0.1]],
  ['huge bounds', { type: 'number', minimum: 1e20, maximum: 2e20 }, [1e20, 2e20], [1e19, 1]],
  ['minimum of -0', { type: 'number', minimum: -0 }, [0, 1], [-1]],
  ['multipleOf', { type: 'integer', multipleOf: 7 }, [0, 7, 14, -21, 700], [1, 8, -1]],
  [
    'multipleOf in a range',
    { type: 'integer', multipleOf: 25, minimum: 10, maximum: 110 },
    [25, 50, 100],
    [0, 10, 30, 125],
  ],
  ['two multiples', { allOf: [{ type: 'integer', multipleOf: 4 }, { multipleOf: 6 }] }, [0, 12, 24], [4, 6]],
  ['multipleOf of a number', { type: 'number', multipleOf: 5 }, [5, -10], [3]],
  ['exclusive and inclusive at one value', { type: 'integer', minimum: 3, exclusiveMinimum: 3 }, [4], [3]],
  ['enum of numbers', { enum: [1, 2.5, -3, 1e21] }, [1, 2.5, -3, 1e21], [2, 0]],
  ['enum within bounds', { enum: [1, 5, 10], minimum: 4 }, [5, 10], [1]],
  ['const number', { const: 0.1 }, [0.1], [1, 0]],
  [
    'enum of mixed values',
    { enum: [null, true, 1, 'a', [1], { a: 1 }] },
    [null, true, 1, 'a', [1], { a: 1 }],
    [false, 2, [], {}],
  ],
  ['enum within a type', { enum: [null, true, 1, 'a'], type: ['integer', 'null'] }, [null, 1], [true, 'a']],
  ['const null', { const: null }, [null], [0]],
  ['const object', { const: { a: [1, { b: null }] } }, [{ a: [1, { b: null }] }], [{ a: [1] }, {}]],
  ['const array', { const: [] }, [[]], [[1]]],
];

const OBJECTS: readonly Row[] = [
  [
    'properties named like those of every object',
    object({ toString: object({ length: S }), constructor: I, hasOwnProperty: B }, ['toString']),
    [{ toString: { length: 'a' } }, { toString: {}, constructor: 1 }],
    [{}, { toString: {}, constructor: 'a' }, { toString: { length: 1 } }],
  ],
  ['required property', object({ a: I }, ['a']), [{ a: 1 }], [{}, { a: 'x' }]],
  ['optional property', object({ a: I }), [{}, { a: 1 }], [{ a: null }]],
  ['declared order', object({ b: I, a: I }, ['a', 'b']), [{ b: 1, a: 2 }], [{ b: 1 }]],
  ['optional first', object({ a: I, b: I }, ['b']), [{ a: 1, b: 2 }, { b: 2 }], [{ a: 1 }]],
  ['optional last', object({ a: I, b: I }, ['a']), [{ a: 1, b: 2 }, { a: 1 }], [{ b: 1 }]],
  [
    'all optional',
    object({ a: I, b: I, c: I }),
    [{}, { a: 1 }, { c: 1 }, { a: 1, c: 2 }, { a: 1, b: 2, c: 3 }],
    [{ a: 'x' }],
  ],
  [
    'optional between required',
    object({ a: I, b: I, c: I }, ['a', 'c']),
    [
      { a: 1, c: 2 },
      { a: 1, b: 2, c: 3 },
    ],
    [{ a: 1, b: 2 }],
  ],
  ['key with quotes and escapes', object({ 'a"b\\\n': I }, ['a"b\\\n']), [{ 'a"b\\\n': 1 }], [{}]],
  ['key beyond ASCII', object({ é日: I }, ['é日']), [{ é日: 1 }], [{}]],
  ['empty key', object({ '': I }, ['']), [{ '': 1 }], []],
  [
    'key that is a prefix',
    object({ a: I, ab: I, abc: I }),
    [{ a: 1, ab: 1, abc: 1 }, { ab: 1 }],
    [{ ab: 'x' }],
  ],
  [
    'no additional properties',
    object({ a: I }, [], { additionalProperties: false }),
    [{ a: 1 }, {}],
    [{ b: 1 }],
  ],
  ['empty object only', { type: 'object', additionalProperties: false }, [{}], [{ a: 1 }]],
  [
    'free additional properties',
    object({ a: I }, [], { additionalProperties: true }),
    [{ a: 1, b: 'x' }, { b: null }, { ab: 1 }, {}],
    [{ a: 'x' }],
  ],
  [
    'typed additional properties',
    object({ a: S }, ['a'], { additionalProperties: I }),
    [{ a: 'x', b: 1 }, { a: 'x' }],
    [{ a: 'x', b: 'y' }],
  ],
  ['map', { type: 'object', additionalProperties: I }, [{}, { x: 1, y: 2 }, { '': 0 }], [{ x: 'a' }]],
  [
    'pattern properties',
    { type: 'object', patternProperties: { '^n_': I, '^s_': S } },
    [{ n_a: 1, s_b: 'x' }, {}],
    [{ n_a: 'x' }, { s_a: 1 }],
  ],
  [
    'pattern properties alone',
    { type: 'object', patternProperties: { '^x': I }, additionalProperties: false },
    [{ x: 1, xy: 2 }],
    [{ y: 1 }],
  ],
  [
    'overlapping pattern properties',
    { type: 'object', patternProperties: { a: { minimum: 2 }, b: { maximum: 5, type: 'integer' } } },
    [{ ab: 3, b: 0 }],
    [{ ab: 1 }, { ab: 6 }],
  ],
  [
    'pattern and additional properties',
    { type: 'object', patternProperties: { '^x': I }, additionalProperties: S },
    [{ x: 1, y: 'a' }],
    [{ x: 'a' }, { y: 1 }],
  ],
  [
    'property and matching pattern',
    object({ xa: { minimum: 3 } }, ['xa'], { patternProperties: { '^x': I } }),
    [{ xa: 3 }, { xa: 4, xb: 0 }],
    [{ xa: 1 }, { xa: 3.5 }],
  ],
  [
    'property names by pattern',
    { type: 'object', propertyNames: { pattern: '^[a-c]+$' } },
    [{ a: 1, cab: null }, {}],
    [{ d: 1 }],
  ],
  [
    'property names by length',
    { type: 'object', propertyNames: { maxLength: 2 }, additionalProperties: I },
    [{ ab: 1 }],
    [{ abc: 1 }],
  ],
  [
    'property names by enum',
    { type: 'object', propertyNames: { enum: ['a', 'b'] }, additionalProperties: I },
    [{ a: 1, b: 2 }],
    [{ c: 1 }],
  ],
  [
    'property forbidden by name',
    { type: 'object', properties: { a: I, b: I }, propertyNames: { enum: ['a'] } },
    [{ a: 1 }, {}],
    [{ b: 1 }],
  ],
  [
    'required without properties',
    { type: 'object', required: ['a'] },
    [{ a: null }, { a: 1, b: 2 }],
    [{}, { b: 1 }],
  ],
  ['required beyond properties', object({ a: I }, ['b']), [{ a: 1, b: 'x' }, { b: null }], [{ a: 1 }]],
  ['forbidden property', object({ a: I, b: false }), [{ a: 1 }, {}], [{ b: 1 }]],
  ['free property', object({ a: true }, ['a']), [{ a: { b: [1] } }], [{}]],
  [
    'maxProperties',
    { type: 'object', properties: { a: I, b: I, c: I }, maxProperties: 2 },
    [{}, { a: 1, c: 2 }],
    [{ a: 1, b: 2, c: 3 }],
  ],
  [
    'minProperties',
    { type: 'object', properties: { a: I, b: I, c: I }, minProperties: 2 },
    [
      { a: 1, c: 2 },
      { a: 1, b: 2, c: 3 },
    ],
    [{ a: 1 }, {}],
  ],
  [
    'both property counts',
    { type: 'object', properties: { a: I, b: I, c: I }, minProperties: 1, maxProperties: 1 },
    [{ b: 1 }],
    [{}, { a: 1, b: 2 }],
  ],
  ['minProperties of a map', { type: 'object', additionalProperties: I, minProperties: 1 }, [{ a: 1 }], [{}]],
  [
    'maxProperties of a map',
    { type: 'object', additionalProperties: I, maxProperties: 2 },
    [{}, { a: 1, b: 2 }],
    [{ a: 1, b: 2, c: 3 }],
  ],
  [
    'property counts with additional properties',
    object({ a: I, b: I }, [], { additionalProperties: B, minProperties: 2, maxProperties: 3 }),
    [
      { a: 1, b: 2 },
      { a: 1, x: true },
      { x: true, y: true },
    ],
    [{ a: 1 }, { x: true }],
  ],
  [
    'minProperties of undeclared keys',
    { type: 'object', additionalProperties: I, minProperties: 3 },
    [
      { a: 1, b: 2, c: 3 },
      { a: 1, ab: 2, '': 3, b: 4 },
    ],
    [{ a: 1, b: 2 }, {}, { a: 1, b: 2, c: 'x' }],
  ],
  [
    'minProperties of declared and undeclared keys',
    object({ a: I }, [], { additionalProperties: { type: 'object', minProperties: 2 }, minProperties: 3 }),
    [{ a: 1, b: { x: 1, y: 'z' }, c: { y: {}, z: [] } }],
    [
      { a: 1, b: { x: 1, y: 2 } },
      { a: 1, b: { x: 1 }, c: { x: 1, y: 2 } },
    ],
  ],
  [
    'minProperties of few keys that match a pattern',
    { type: 'object', patternProperties: { '^[a-c]$': I }, additionalProperties: false, minProperties: 3 },
    [{ b: 1, a: 2, c: 3 }],
    [
      { a: 1, b: 2 },
      { a: 1, b: 2, d: 3 },
    ],
  ],
  [
    'a negated maxProperties beside undeclared keys',
    { type: 'object', additionalProperties: I, not: { maxProperties: 1 } },
    [{ a: 1, b: 2 }],
    [{ a: 1 }, {}],
  ],
  [
    'some undeclared property beside minProperties',
    { type: 'object', additionalProperties: true, minProperties: 3, not: { additionalProperties: I } },
    [
      { a: 'x', b: 1, c: 2 },
      { a: 1, b: 'x', c: 3, d: 4 },
    ],
    [
      { a: 1, b: 2, c: 3 },
      { a: 'x', b: 1 },
    ],
  ],
  [
    'nested objects',
    object({ a: object({ b: object({ c: B }, ['c']) }, ['b']) }, ['a']),
    [{ a: { b: { c: true } } }],
    [{ a: { b: {} } }],
  ],
  [
    'many optional properties',
    object(Object.fromEntries(Array.from({ length: 20 }, (_, i) => [`p${i}`, I]))),
    [{}, { p3: 1, p19: 2 }],
    [{ p3: 'x' }],
  ],
  [
    'product',
    object(
      {
        name: S,
        price: { type: 'number', minimum: 0 },
        in_stock: B,
        tags: { type: 'array', items: S, minItems: 1, maxItems: 5 },
      },
      ['name', 'price'],
    ),
    [
      { name: 'a', price: 1.5 },
      { name: '', price: 0, in_stock: true, tags: ['x'] },
    ],
    [{ name: 'a' }, { name: 'a', price: -1 }, { name: 'a', price: 1, tags: [] }],
  ],
];

const ARRAYS: readonly Row[] = [
  ['items', { type: 'array', items: I }, [[], [1], [1, 2, 3]], [['a'], [1, null]]],
  [
    'minItems',
    { type: 'array', items: I, minItems: 2 },
    [
      [1, 2],
      [1, 2, 3],
    ],
    [[], [1]],
  ],
  ['maxItems', { type: 'array', items: I, maxItems: 2 }, [[], [1, 2]], [[1, 2, 3]]],
  ['both item counts', { type: 'array', items: I, minItems: 1, maxItems: 2 }, [[1], [1, 2]], [[], [1, 2, 3]]],
  ['exact items', { type: 'array', items: B, minItems: 2, maxItems: 2 }, [[true, false]], [[true]]],
  ['empty array only', { type: 'array', maxItems: 0 }, [[]], [[1]]],
  ['items false', { type: 'array', items: false }, [[]], [[1]]],
  ['free items', { type: 'array', items: true, minItems: 1 }, [[null], [{}]], [[]]],
  [
    'large maxItems',
    { type: 'array', items: I, maxItems: 3000 },
    [[], Array.from({ length: 50 }, () => 1)],
    [Array.from({ length: 3001 }, () => 1)],
  ],
  [
    'prefixItems',
    { type: 'array', prefixItems: [I, S] },
    [[], [1], [1, 'a'], [1, 'a', null]],
    [['a'], [1, 2]],
  ],
  [
    'prefixItems closed',
    { type: 'array', prefixItems: [I, S], items: false },
    [[1, 'a'], [1], []],
    [[1, 'a', 2]],
  ],
  ['prefixItems and items', { type: 'array', prefixItems: [I], items: S }, [[1, 'a', 'b'], [1]], [[1, 2]]],
  [
    'prefixItems and minItems',
    { type: 'array', prefixItems: [I, I], minItems: 2, items: false },
    [[1, 2]],
    [[1]],
  ],
  [
    'prefixItems and maxItems',
    { type: 'array', prefixItems: [I, S, B], maxItems: 2 },
    [[1, 'a'], []],
    [[1, 'a', true]],
  ],
  [
    'tuple and counts beyond it',
    { type: 'array', prefixItems: [I], items: B, minItems: 3, maxItems: 4 },
    [[1, true, false]],
    [
      [1, true],
      [1, true, true, true, true],
    ],
  ],
  ['uniqueItems of one', { type: 'array', items: I, maxItems: 1, uniqueItems: true }, [[], [1]], [[1, 2]]],
  [
    'nested arrays',
    { type: 'array', items: { type: 'array', items: I, minItems: 1 } },
    [[], [[1], [2, 3]]],
    [[[]], [1]],
  ],
  ['array of objects', { type: 'array', items: object({ a: I }, ['a']) }, [[{ a: 1 }, { a: 2 }]], [[{}]]],
];

const COMBINED: readonly Row[] = [
  ['anyOf types', { anyOf: [S, I] }, ['a', 1], [true, null]],
  [
    'anyOf overlapping',
    {
      anyOf: [
        { type: 'integer', minimum: 5 },
        { type: 'integer', maximum: 10 },
      ],
    },
    [0, 7, 20],
    ['a'],
  ],
  [
    'anyOf objects',
    { anyOf: [object({ a: I }, ['a']), object({ b: S }, ['b'])] },
    [{ a: 1 }, { b: 'x' }],
    [{}],
  ],
  [
    'anyOf with shared keywords',
    { type: 'object', properties: { a: I, b: I }, anyOf: [{ required: ['a'] }, { required: ['b'] }] },
    [{ a: 1 }, { b: 1 }, { a: 1, b: 2 }],
    [{}],
  ],
  ['anyOf with an impossible branch', { anyOf: [false, S] }, ['a'], [1]],
  ['nested anyOf', { anyOf: [{ anyOf: [S, I] }, { type: 'null' }] }, ['a', 1, null], [true]],
  [
    'two lists of alternatives',
    {
      anyOf: [{ minimum: 0 }, { maximum: -10 }],
      oneOf: [
        { type: 'integer', multipleOf: 2, maximum: 5 },
        { type: 'integer', minimum: 6 },
      ],
    },
    [0, 4, -12, 7],
    [-1, 3],
  ],
  ['oneOf types', { oneOf: [S, I, { type: 'null' }] }, ['a', 1, null], [true]],
  [
    'oneOf numbers',
    {
      oneOf: [
        { type: 'integer', maximum: 3 },
        { type: 'integer', exclusiveMinimum: 3 },
      ],
    },
    [3, 4],
    ['a'],
  ],
  [
    'oneOf by discriminator',
    {
      oneOf: [
        object({ t: { const: 'a' }, x: I }, ['t', 'x']),
        object({ t: { const: 'b' }, y: S }, ['t', 'y']),
      ],
    },
    [
      { t: 'a', x: 1 },
      { t: 'b', y: 's' },
    ],
    [{ t: 'b' }, { t: 'c' }],
  ],
  [
    'oneOf with a branch that no string is long enough for',
    {
      oneOf: [
        { type: 'string', not: { minLength: 0 } },
        { type: 'string', pattern: '^b' },
      ],
    },
    ['b', 'bc'],
    ['', 'a', 1],
  ],
  ['oneOf by enum', { oneOf: [{ enum: ['a', 'b'] }, { enum: ['c', 1] }] }, ['a', 'c', 1], ['d']],
  [
    'oneOf by pattern',
    {
      oneOf: [
        { type: 'string', pattern: '^a' },
        { type: 'string', pattern: '^b' },
      ],
    },
    ['ax', 'b'],
    ['c'],
  ],
  [
    'oneOf by forbidden property',
    {
      oneOf: [
        object({ a: I }, ['a'], { additionalProperties: false }),
        object({ b: I }, ['b'], { additionalProperties: false }),
      ],
    },
    [{ a: 1 }, { b: 1 }],
    [{}],
  ],
  [
    'oneOf by array length',
    {
      oneOf: [
        { type: 'array', items: I, maxItems: 1 },
        { type: 'array', items: I, minItems: 2 },
      ],
    },
    [[], [1], [1, 2]],
    [['a']],
  ],
  [
    'oneOf by first item',
    {
      oneOf: [
        { type: 'array', prefixItems: [{ const: 1 }], minItems: 1 },
        { type: 'array', prefixItems: [{ const: 2 }], minItems: 1 },
      ],
    },
    [[1], [2, 'x']],
    [[3], []],
  ],
  ['oneOf of one branch', { oneOf: [S] }, ['a'], [1]],
  [
    'allOf types',
    { allOf: [{ type: ['string', 'integer'] }, { type: ['integer', 'null'] }] },
    [1],
    ['a', null],
  ],
  ['allOf number and integer', { allOf: [N, I] }, [1], [1.5]],
  [
    'allOf bounds',
    { allOf: [{ type: 'integer', minimum: 3 }, { maximum: 7 }, { minimum: 5 }] },
    [5, 7],
    [4, 8],
  ],
  [
    'allOf objects',
    { allOf: [object({ a: I }, ['a']), object({ b: S }, ['b'])] },
    [{ a: 1, b: 'x' }],
    [{ a: 1 }],
  ],
  [
    'allOf of one property',
    { allOf: [object({ a: { minimum: 2 } }), object({ a: I }, ['a'])] },
    [{ a: 2 }],
    [{ a: 1 }, { a: 2.5 }],
  ],
  [
    'allOf with additionalProperties false',
    { allOf: [object({ a: I }, [], { additionalProperties: false }), object({ a: { minimum: 3 }, b: S })] },
    [{ a: 3 }, {}],
    [{ a: 1 }, { b: 'x' }],
  ],
  [
    'allOf with typed additional properties',
    { allOf: [{ type: 'object', additionalProperties: I }, object({ a: { minimum: 3 } }, ['a'])] },
    [{ a: 3 }],
    [{ a: 'x' }, { a: 1 }],
  ],
  ['allOf enums', { allOf: [{ enum: [1, 2, 3] }, { enum: [2, 3, 4] }] }, [2, 3], [1, 4]],
  ['allOf const and type', { allOf: [{ const: 'a' }, S] }, ['a'], ['b']],
  [
    'allOf arrays',
    {
      allOf: [
        { type: 'array', items: I },
        { items: { minimum: 3 }, minItems: 1 },
      ],
    },
    [[3]],
    [[], [1], ['a']],
  ],
  [
    'allOf beside own keywords',
    { type: 'object', properties: { a: I }, allOf: [{ required: ['a'] }] },
    [{ a: 1 }],
    [{}],
  ],
  ['allOf with anyOf inside', { allOf: [{ anyOf: [S, I] }, { anyOf: [I, B] }] }, [1], ['a', true]],
  ['anyOf with enum beside', { enum: ['a', 1, null], anyOf: [S, { type: 'null' }] }, ['a', null], [1]],
];

const REFERENCES: readonly Row[] = [
  [
    'a $dynamicRef to the outermost of two anchors',
    {
      $id: 'https://x.test/strict-tree',
      $dynamicAnchor: 'node',
      $ref: 'tree',
      unevaluatedProperties: false,
      $defs: {
        tree: {
          $id: 'https://x.test/tree',
          $dynamicAnchor: 'node',
          type: 'object',
          properties: { n: I, next: { type: 'array', items: { $dynamicRef: '#node' } } },
        },
      },
    },
    [{}, { n: 1 }, { next: [{ n: 1 }, { next: [{}] }] }],
    [{ m: 1 }, { next: [{ m: 1 }] }, { next: [{ next: [{ m: 1 }] }] }, { next: [1] }],
  ],
  ['$ref to $defs', { $defs: { n: I }, type: 'array', items: { $ref: '#/$defs/n' } }, [[1]], [['a']]],
  ['$ref to definitions', { definitions: { n: I }, $ref: '#/definitions/n' }, [1], ['a']],
  ['$ref with escapes', { $defs: { 'a/b~c%': I }, $ref: '#/$defs/a~1b~0c%25' }, [1], ['a']],
  ['$ref to a property', object({ a: I, b: { $ref: '#/properties/a' } }, ['b']), [{ b: 1 }], [{ b: 'x' }]],
  ['$ref beside keywords', { $defs: { n: I }, $ref: '#/$defs/n', minimum: 3 }, [3], [2]],
  [
    'chain of references',
    { $defs: { a: { $ref: '#/$defs/b' }, b: { $ref: '#/$defs/c' }, c: B }, $ref: '#/$defs/a' },
    [true],
    [1],
  ],
  ['$anchor', { $defs: { x: { $anchor: 'num', type: 'integer' } }, $ref: '#num' }, [1], ['a']],
  [
    '$id',
    {
      $id: 'https://x.example/s',
      $defs: { n: I },
      items: { $ref: 'https://x.example/s#/$defs/n' },
      type: 'array',
    },
    [[1]],
    [['a']],
  ],
  [
    '$ref inside a resource of its own',
    {
      $defs: {
        n: S,
        inner: {
          $id: 'https://x.example/inner',
          $defs: { n: I, m: { $anchor: 'm', type: 'integer' } },
          type: 'array',
          prefixItems: [{ $ref: '#/$defs/n' }, { $ref: '#m' }],
        },
        m: { $anchor: 'm', type: 'string' },
      },
      ...object({ a: { $ref: 'https://x.example/inner' }, b: { $ref: '#m' } }),
    },
    [{ a: [1, 2], b: 'x' }],
    [{ a: ['x'] }, { a: [1, 'x'] }, { b: 1 }],
  ],
  [
    '$ref relative to $id',
    {
      $id: 'https://x.example/schemas/root.json',
      $defs: { n: { $id: 'n.json', $defs: { 'a%b': I }, type: 'array', items: { $ref: '#/$defs/a%25b' } } },
      type: 'array',
      items: { $ref: '/schemas/n.json' },
    },
    [[[1]]],
    [[1], [['a']]],
  ],
  [
    '$anchor in a property named as a keyword',
    object({ default: { $anchor: 'n', type: 'integer' }, const: { $ref: '#n' } }),
    [{ const: 1 }],
    [{ const: 'a' }],
  ],
  [
    'list',
    {
      $defs: {
        list: object({ value: I, next: { anyOf: [{ $ref: '#/$defs/list' }, { type: 'null' }] } }, [
          'value',
          'next',
        ]),
      },
      $ref: '#/$defs/list',
    },
    [
      { value: 1, next: null },
      { value: 1, next: { value: 2, next: null } },
    ],
    [{ value: 1 }],
  ],
  [
    'tree',
    object({ name: S, children: { type: 'array', items: { $ref: '#' } } }, ['name']),
    [{ name: 'a' }, { name: 'a', children: [{ name: 'b', children: [] }] }],
    [{ children: [] }],
  ],
  [
    'mutual recursion',
    {
      $defs: { a: object({ b: { $ref: '#/$defs/b' } }), b: object({ a: { $ref: '#/$defs/a' } }) },
      $ref: '#/$defs/a',
    },
    [{}, { b: {} }, { b: { a: { b: {} } } }],
    [{ b: 1 }],
  ],
  [
    'recursion through anyOf',
    { anyOf: [S, { type: 'array', items: { $ref: '#' } }] },
    ['a', [], [['a'], 'b']],
    [1],
  ],
  [
    'recursion without end in an optional branch',
    { $defs: { x: object({ x: { $ref: '#/$defs/x' } }, ['x']) }, anyOf: [{ $ref: '#/$defs/x' }, I] },
    [1],
    [{}],
  ],
  [
    'recursive map',
    { type: 'object', additionalProperties: { $ref: '#' } },
    [{}, { a: { b: {} } }],
    [{ a: 1 }],
  ],
  [
    'recursive pairs',
    {
      $defs: {
        e: {
          anyOf: [
            I,
            {
              type: 'array',
              prefixItems: [{ enum: ['+', '*'] }, { $ref: '#/$defs/e' }, { $ref: '#/$defs/e' }],
              minItems: 3,
              items: false,
            },
          ],
        },
      },
      $ref: '#/$defs/e',
    },
    [1, ['+', 1, ['*', 2, 3]]],
    [['+', 1]],
  ],
  [
    'draft 7 tuple',
    {
      $schema: 'http://json-schema.org/draft-07/schema#',
      type: 'array',
      items: [I, S],
      additionalItems: false,
    },
    [[1, 'a'], [1]],
    [[1, 'a', 2], ['a']],
  ],
  [
    'draft 7 tuple with additional items',
    { $schema: 'http://json-schema.org/draft-07/schema#', type: 'array', items: [I], additionalItems: B },
    [[1, true]],
    [[1, 2]],
  ],
  [
    'draft 7 definitions',
    {
      $schema: 'http://json-schema.org/draft-07/schema#',
      definitions: { p: { type: 'integer', exclusiveMinimum: 0 } },
      ...object({ n: { $ref: '#/definitions/p' } }, ['n']),
    },
    [{ n: 1 }],
    [{ n: 0 }],
  ],
];

const REAL: readonly Row[] = [
  [
    'discriminated union as Pydantic writes it',
    {
      $defs: {
        Cat: object({ kind: { const: 'cat', title: 'Kind', type: 'string' }, lives: I }, ['kind', 'lives']),
        Dog: object({ kind: { const: 'dog', title: 'Kind', type: 'string' } }, ['kind']),
      },
      ...object(
        {
          pet: {
            discriminator: { mapping: { cat: '#/$defs/Cat', dog: '#/$defs/Dog' }, propertyName: 'kind' },
            oneOf: [{ $ref: '#/$defs/Cat' }, { $ref: '#/$defs/Dog' }],
          },
        },
        ['pet'],
      ),
    },
    [{ pet: { kind: 'cat', lives: 9 } }, { pet: { kind: 'dog' } }],
    [{ pet: { kind: 'cat' } }, { pet: { kind: 'cow' } }],
  ],
  [
    'Pydantic’s union of tags with defaults',
    {
      $defs: {
        Cat: object({ kind: { const: 'cat', default: 'cat', type: 'string' }, lives: I }, ['lives']),
        Dog: object({ kind: { const: 'dog', default: 'dog', type: 'string' } }),
        Fish: object({ kind: { enum: ['carp', 'eel'], default: 'eel', type: 'string' }, lives: I }, [
          'lives',
        ]),
        Mammal: {
          discriminator: { mapping: { cat: '#/$defs/Cat', dog: '#/$defs/Dog' }, propertyName: 'kind' },
          oneOf: [{ $ref: '#/$defs/Cat' }, { $ref: '#/$defs/Dog' }],
        },
      },
      type: 'array',
      items: {
        discriminator: { propertyName: 'kind' },
        oneOf: [{ $ref: '#/$defs/Mammal' }, { $ref: '#/$defs/Fish' }],
      },
    },
    [[{ kind: 'cat', lives: 9 }, { kind: 'dog' }], [{ kind: 'carp', lives: 1 }]],
    [[{ kind: 'cat' }], [{ kind: 'cow', lives: 1 }]],
  ],
  [
    'person',
    object(
      {
        name: { type: 'string', minLength: 1 },
        age: { type: 'integer', minimum: 0, maximum: 150 },
        email: { type: 'string', format: 'email' },
      },
      ['name', 'age'],
      { additionalProperties: false },
    ),
    [
      { name: 'A', age: 30 },
      { name: 'A', age: 150, email: 'a@b.co' },
    ],
    [
      { name: '', age: 1 },
      { name: 'A', age: 151 },
    ],
  ],
  [
    'address list',
    {
      type: 'array',
      items: object({ street: S, zip: { type: 'string', pattern: '^[0-9]{5}$' } }, ['street', 'zip']),
      maxItems: 3,
    },
    [[{ street: 's', zip: '12345' }], []],
    [[{ street: 's', zip: '1234' }]],
  ],
  [
    'tool call',
    object(
      {
        tool: { enum: ['search', 'read'] },
        arguments: object({ query: S, limit: { type: 'integer', minimum: 1, maximum: 50 } }, ['query']),
      },
      ['tool', 'arguments'],
    ),
    [{ tool: 'search', arguments: { query: 'q' } }],
    [{ tool: 'write', arguments: { query: 'q' } }],
  ],
  [
    'event',
    object(
      {
        id: { type: 'string', format: 'uuid' },
        at: { type: 'string', format: 'date-time' },
        level: { enum: ['info', 'warn'] },
      },
      ['id', 'at', 'level'],
    ),
    [{ id: '123e4567-e89b-12d3-a456-426614174000', at: '2024-01-01T00:00:00Z', level: 'info' }],
    [{ id: 'x', at: 'y', level: 'info' }],
  ],
  [
    'geometry',
    {
      oneOf: [
        object(
          { type: { const: 'Point' }, coordinates: { type: 'array', items: N, minItems: 2, maxItems: 2 } },
          ['type', 'coordinates'],
        ),
        object(
          {
            type: { const: 'Line' },
            coordinates: {
              type: 'array',
              items: { type: 'array', items: N, minItems: 2, maxItems: 2 },
              minItems: 2,
            },
          },
          ['type', 'coordinates'],
        ),
      ],
    },
    [
      { type: 'Point', coordinates: [1, 2.5] },
      {
        type: 'Line',
        coordinates: [
          [0, 0],
          [1, 1],
        ],
      },
    ],
    [{ type: 'Point', coordinates: [1] }],
  ],
  [
    'nullable fields',
    object({ a: { type: ['string', 'null'] }, b: { anyOf: [I, { type: 'null' }] } }, ['a', 'b']),
    [
      { a: null, b: 1 },
      { a: 'x', b: null },
    ],
    [{ a: 1, b: 1 }],
  ],
  [
    'settings',
    object(
      {
        theme: { enum: ['light', 'dark'] },
        sizes: {
          type: 'object',
          patternProperties: { '^[a-z]+$': { type: 'integer', minimum: 1 } },
          additionalProperties: false,
        },
      },
      ['theme'],
    ),
    [{ theme: 'dark', sizes: { a: 1 } }, { theme: 'light' }],
    [{ theme: 'dark', sizes: { A: 1 } }],
  ],
  [
    'chain of thought',
    object(
      {
        steps: {
          type: 'array',
          items: object({ explanation: S, output: S }, ['explanation', 'output'], {
            additionalProperties: false,
          }),
        },
        answer: S,
      },
      ['steps', 'answer'],
      { additionalProperties: false },
    ),
    [{ steps: [{ explanation: 'e', output: 'o' }], answer: 'a' }],
    [{ steps: [] }],
  ],
];

const CONDITIONS: readonly Row[] = [
  ['not a type', { not: { type: ['string', 'object', 'array'] } }, [1, null, true], ['a', {}, []]],
  ['not some texts', { type: 'string', not: { enum: ['a', 'b"'] } }, ['', 'ab', 'c'], ['a', 'b"']],
  ['not some numbers', { type: 'number', not: { enum: [1, 2.5] } }, [1.5, 0, 3], [1, 2.5]],
  ['not an integer constant', { ...I, not: { const: 7 } }, [6, 8, 77], [7]],
  ['not a pattern', { ...S, not: { pattern: '^a|z$' } }, ['', 'ba', 'zb'], ['a', 'ab', 'bz']],
  ['not a format', { ...S, maxLength: 12, not: { format: 'date' } }, ['', '2024-02-30'], ['2024-02-29']],
  ['not a length', { ...S, not: { minLength: 3 } }, ['', 'ab'], ['abc']],
  ['not a range', { ...N, not: { minimum: 1, exclusiveMaximum: 5 } }, [0.5, 5, -1], [1, 4.9]],
  [
    'not required',
    object({ a: I, b: I }, [], { not: { required: ['a', 'b'] } }),
    [{}, { a: 1 }, { b: 1 }],
    [{ a: 1, b: 1 }],
  ],
  [
    'not a property value',
    object({ a: S, b: I }, ['a'], { not: { properties: { a: { const: 'x' } } } }),
    [{ a: 'y' }, { a: 'xx', b: 1 }],
    [{ a: 'x' }, { a: 'x', b: 1 }],
  ],
  ['not any item', { type: 'array', items: I, not: { contains: { const: 0 } } }, [[], [1, 2]], [[0], [1, 0]]],
  ['not all items', { type: 'array', items: I, not: { items: { minimum: 5 } } }, [[1], [9, 4]], [[], [5, 6]]],
  ['not allOf', { ...I, not: { allOf: [{ minimum: 3 }, { maximum: 5 }] } }, [2, 6], [3, 5]],
  ['not anyOf', { ...I, not: { anyOf: [{ maximum: 3 }, { minimum: 5 }] } }, [4], [3, 5]],
  ['not oneOf', { ...I, not: { oneOf: [{ maximum: 5 }, { minimum: 3 }] } }, [3, 4, 5], [2, 6]],
  ['not not', { not: { not: { type: 'string', maxLength: 2 } } }, ['ab', ''], ['abc', 1]],
  ['not a reference', { $defs: { a: { const: 'a' } }, ...S, not: { $ref: '#/$defs/a' } }, ['b'], ['a']],
  ['oneOf that overlaps', { ...I, oneOf: [{ minimum: 3 }, { maximum: 5 }] }, [2, 6], [3, 5]],
  [
    'oneOf of required properties',
    object({ a: I, b: I }, [], { oneOf: [{ required: ['a'] }, { required: ['b'] }] }),
    [{ a: 1 }, { b: 1 }],
    [{}, { a: 1, b: 1 }],
  ],
  [
    'oneOf of objects with optional properties',
    { oneOf: [object({ a: I }), object({ b: I }, ['b'])] },
    [{ a: 1 }, {}],
    [{ a: 'x' }, { b: 1, a: 1 }],
  ],
  [
    'if with then and else',
    object({ kind: S, size: I }, ['kind'], {
      if: { properties: { kind: { const: 'box' } } },
      // biome-ignore lint/suspicious/noThenProperty: JSON Schema names the keyword
      then: { required: ['size'] },
      else: { properties: { size: false } },
    }),
    [{ kind: 'box', size: 1 }, { kind: 'dot' }],
    [{ kind: 'box' }, { kind: 'dot', size: 1 }],
  ],
  [
    'many conditions on one property',
    object({ kind: { enum: [...'abcdefgh'] }, n: I }, ['kind'], {
      allOf: [...'abcdefgh'].map((kind, i) => ({
        if: { properties: { kind: { const: kind } } },
        // biome-ignore lint/suspicious/noThenProperty: JSON Schema names the keyword
        then: { properties: { n: { minimum: 10 * i, maximum: 10 * i + 9 } } },
      })),
    }),
    [{ kind: 'a', n: 5 }, { kind: 'h', n: 75 }, { kind: 'c' }],
    [
      { kind: 'a', n: 10 },
      { kind: 'h', n: 5 },
    ],
  ],
  ['if without then', { ...I, if: { minimum: 3 }, else: { maximum: 0 } }, [3, 0], [1, 2]],
  [
    'dependentRequired',
    object({ a: I, b: I, c: I }, [], { dependentRequired: { a: ['b'] } }),
    [{}, { a: 1, b: 1 }, { b: 1 }, { c: 1 }],
    [{ a: 1 }, { a: 1, c: 1 }],
  ],
  [
    'dependentSchemas',
    object({ a: I, b: S }, [], { dependentSchemas: { a: { properties: { b: { minLength: 2 } } } } }),
    [{ a: 1, b: 'xy' }, { b: 'x' }, { a: 1 }],
    [{ a: 1, b: 'x' }],
  ],
  [
    'dependencies of draft 7',
    {
      $schema: 'http://json-schema.org/draft-07/schema#',
      ...object({ a: I, b: I, c: I }, [], { dependencies: { a: ['b'], b: { required: ['c'] } } }),
    },
    [{}, { c: 1 }, { a: 1, b: 1, c: 1 }],
    [{ a: 1 }, { b: 1 }, { a: 1, b: 1 }],
  ],
  ['contains', { type: 'array', items: I, contains: { minimum: 5 } }, [[5], [1, 7], [6, 1, 2]], [[], [1, 2]]],
  [
    'contains so many',
    { type: 'array', items: I, contains: { minimum: 5 }, minContains: 2, maxContains: 2 },
    [
      [5, 6],
      [1, 7, 8],
    ],
    [[5], [5, 6, 7]],
  ],
  [
    'contains within counts',
    { type: 'array', items: I, minItems: 2, maxItems: 3, contains: { const: 0 } },
    [
      [0, 1],
      [1, 1, 0],
    ],
    [[0], [1, 2], [0, 1, 2, 3]],
  ],
  [
    'contains nothing needed',
    { type: 'array', items: I, contains: { const: 1 }, minContains: 0 },
    [[], [2], [1]],
    [['a']],
  ],
  [
    'unique values of a list',
    { type: 'array', items: { enum: ['a', 'b', 3] }, uniqueItems: true },
    [[], ['b', 'a'], [3, 'a', 'b']],
    [['a', 'a']],
  ],
  [
    'unique values, counted',
    { type: 'array', items: { enum: [1, 2, 3] }, uniqueItems: true, minItems: 2, maxItems: 2 },
    [
      [3, 1],
      [1, 2],
    ],
    [[1], [1, 1], [1, 2, 3]],
  ],
  [
    'unique values of any type, equal by value and not by text',
    { type: 'array', uniqueItems: true },
    [[], [1, 2, 11], ['1', 1, true, null], [{ a: 1 }, { a: 2 }, {}], [[1], [1, 1], []], ['é', 'e\u0301']],
    [
      [1, 1],
      [1, 2, 1],
      ['a"', 'a"'],
      [
        { a: 1, b: [] },
        { b: [], a: 1 },
      ],
      [[1], [1]],
      [null, null],
      ['é', 'é'],
    ],
  ],
  [
    'unique objects',
    { type: 'array', items: object({ a: I, b: S }, ['a']), uniqueItems: true, minItems: 2 },
    [
      [{ a: 1 }, { a: 2 }],
      [{ a: 1 }, { a: 1, b: '' }],
    ],
    [[{ a: 1 }], [{ a: 1 }, { a: 1 }]],
  ],
  [
    'unique values within unique values',
    { type: 'array', items: { type: 'array', items: I, uniqueItems: true }, uniqueItems: true },
    [[[1, 2], [2, 1], []]],
    [
      [[1, 1]],
      [
        [1, 2],
        [1, 2],
      ],
      [[], []],
    ],
  ],
  [
    'unique values after a prefix',
    { type: 'array', prefixItems: [I, S], items: I, uniqueItems: true },
    [[1, '1', 2], [1]],
    [[1, 'a', 1]],
  ],
  [
    'unique values, one of which is a certain one',
    { type: 'array', items: I, contains: { minimum: 10 }, uniqueItems: true },
    [[1, 10], [10]],
    [[1], [10, 10]],
  ],
  [
    'unique values of a long list, in any order',
    { type: 'array', items: { enum: [...'abcdefghijklmnop'] }, uniqueItems: true, minItems: 1, maxItems: 3 },
    [['a'], ['p', 'a', 'c']],
    [[], ['a', 'a'], ['a', 'b', 'c', 'd']],
  ],
  [
    'no unevaluated properties beside allOf and $ref',
    {
      $defs: { base: object({ a: I }) },
      type: 'object',
      allOf: [{ $ref: '#/$defs/base' }, { properties: { b: S } }],
      properties: { c: B },
      unevaluatedProperties: false,
    },
    [{}, { c: true, a: 1, b: 'x' }],
    [{ d: 1 }, { a: 'x' }],
  ],
  [
    'unevaluated properties with a schema',
    { ...object({ a: I }), patternProperties: { '^x': B }, unevaluatedProperties: S },
    [{ a: 1, x: true, b: 'y' }],
    [{ b: 1 }, { x: 'y' }],
  ],
  [
    'unevaluated properties of all branches that hold',
    {
      type: 'object',
      anyOf: [
        { properties: { a: I }, required: ['a'] },
        { properties: { b: S }, required: ['b'] },
      ],
      unevaluatedProperties: false,
    },
    [{ a: 1 }, { b: 'x' }, { a: 1, b: 'x' }],
    [{}, { a: 1, b: 1 }, { a: 1, c: 1 }],
  ],
  [
    'unevaluated properties by if',
    {
      type: 'object',
      if: { properties: { a: { const: 1 } }, required: ['a'] },
      // biome-ignore lint/suspicious/noThenProperty: JSON Schema names the keyword
      then: { properties: { b: S } },
      else: { properties: { c: S } },
      unevaluatedProperties: false,
    },
    [{ a: 1, b: 'x' }, { c: 'x' }, {}],
    [{ a: 2 }, { a: 1, c: 'x' }, { b: 'x' }],
  ],
  [
    'branches of oneOf that differ only by what they evaluate',
    {
      type: 'object',
      oneOf: [{ properties: { a: I }, required: ['a'] }, { properties: { b: I } }],
      unevaluatedProperties: false,
    },
    [{}, { b: 1 }],
    [{ a: 1 }, { a: 1, b: 1 }],
  ],
  [
    'a cousin sees nothing',
    {
      type: 'object',
      allOf: [{ properties: { a: I } }, { type: 'object', unevaluatedProperties: false }],
    },
    [{}],
    [{ a: 1 }],
  ],
  [
    'no unevaluated items',
    { type: 'array', prefixItems: [I], allOf: [{ prefixItems: [true, S] }], unevaluatedItems: false },
    [[], [1], [1, 'a']],
    [
      [1, 'a', 2],
      [1, 2],
    ],
  ],
  [
    'unevaluated items beside contains',
    { type: 'array', contains: { type: 'integer', minimum: 5 }, unevaluatedItems: S },
    [[5], ['a', 7, 8, 'b']],
    [['a'], [4]],
  ],
  [
    'a dynamic reference to a single anchor',
    {
      $dynamicAnchor: 'tree',
      type: 'object',
      properties: { v: I, children: { type: 'array', items: { $dynamicRef: '#tree' } } },
      additionalProperties: false,
    },
    [{ v: 1, children: [{ children: [] }, { v: 2 }] }],
    [{ children: [{ v: 'x' }] }],
  ],
  [
    'multiples of cents',
    { ...N, multipleOf: 0.01, minimum: 0, maximum: 2 },
    [0, 0.01, 1.5, 2],
    [0.005, 2.01],
  ],
  ['multiples of 2.5', { ...N, multipleOf: 2.5, maximum: 20, minimum: -5 }, [2.5, 5, -2.5, 17.5], [1, 2]],
  ['integer multiples of a fraction', { ...I, multipleOf: 1.5, minimum: 0, maximum: 10 }, [3, 6], [1, 2]],
  ['an unknown keyword', { ...I, javaType: 'int', _format: 'x' }, [1], ['a']],
  [
    'a format beside a pattern',
    { ...S, format: 'date', pattern: '^[0-9]{4}-01-01$' },
    ['2024-01-01'],
    ['2024-01-02'],
  ],
  [
    'a format that a pattern contradicts',
    { ...S, format: 'x-date', pattern: '^[0-9]{4}$' },
    ['2024'],
    ['2024-01-02'],
  ],
  ['uri-template', { ...S, format: 'uri-template' }, ['http://a.b/{c}{?d,e*}', ''], ['/{', '/{}']],
  ['json-pointer', { ...S, format: 'json-pointer' }, ['', '/a/0', '/~0~1'], ['a', '/~2']],
  [
    'uri-reference',
    { ...S, format: 'uri-reference' },
    ['a/b', '/x?y#z', 'http://a.b/', ''],
    ['\\\\a', 'a b'],
  ],
  ['byte', { ...S, format: 'byte' }, ['', 'YQ==', 'YWJj'], ['YQ', 'a']],
  [
    'no multiple',
    { ...N, not: { multipleOf: 0.5 }, minimum: -1, maximum: 2 },
    [0.25, -0.7, 1.9],
    [0, 0.5, 2],
  ],
  [
    'no integer',
    { not: { type: ['integer', 'string', 'array', 'object'] } },
    [0.5, null, true],
    [1, 'a', []],
  ],
  [
    'some property that violates a pattern property',
    { type: 'object', properties: { ab: {}, b: {} }, not: { patternProperties: { '^a': I } } },
    [{ ab: 'x' }, { ab: null, b: 1 }],
    [{}, { ab: 1 }, { b: 'x' }],
  ],
  [
    'some undeclared property that violates a pattern property',
    { type: 'object', not: { patternProperties: { '^a': I } } },
    [{ a: 'x' }, { b: 1, a2: null, c: 2 }],
    [{}, { a: 1 }, { b: 'x' }],
  ],
  [
    'some additional property of the wrong type',
    {
      type: 'object',
      not: { properties: { a: {} }, patternProperties: { '^p': {} }, additionalProperties: I },
    },
    [{ b: 'x' }, { c: 1, q: [] }, { a: 0, q: [], c: 1 }],
    [{}, { a: 'x' }, { p: 'x', b: 1 }],
  ],
  [
    'branches that only additional properties separate',
    {
      oneOf: [
        { type: 'object', properties: { a: S }, additionalProperties: false },
        { type: 'object', properties: { b: S }, additionalProperties: false },
      ],
    },
    [{ a: 'x' }, { b: 'x' }],
    [{}, { a: 'x', b: 'x' }, { a: 1 }],
  ],
  [
    'some property name that is not allowed',
    { type: 'object', not: { propertyNames: { maxLength: 2 } } },
    [{ abc: 1 }, { a: 1, abcd: 2 }],
    [{}, { ab: 1 }],
  ],
  [
    'some unevaluated property',
    { type: 'object', not: { properties: { a: {} }, unevaluatedProperties: I }, additionalProperties: true },
    [{ b: 'x' }, { a: 1, b: 'x', c: 1 }],
    [{}, { a: 'x' }, { b: 1 }],
  ],
  [
    'an item after a tuple',
    { type: 'array', not: { prefixItems: [{}, {}], items: false }, maxItems: 4 },
    [
      [1, 2, 3],
      ['a', null, [], 4],
    ],
    [[], [1], [1, 2]],
  ],
  [
    'an additional item that is not allowed',
    {
      $schema: 'http://json-schema.org/draft-07/schema#',
      type: 'array',
      not: { items: [{}], additionalItems: { type: 'integer' } },
      maxItems: 3,
    },
    [
      [1, 'a'],
      [1, null, 2],
    ],
    [[], ['a'], [1, 2, 3]],
  ],
  [
    'an unevaluated item that is not allowed',
    { type: 'array', not: { prefixItems: [{}], unevaluatedItems: { type: 'integer' } }, maxItems: 3 },
    [
      [1, 'a'],
      ['a', null, 2],
    ],
    [[], ['a'], [1, 2]],
  ],
  [
    'names of properties by oneOf',
    { type: 'object', propertyNames: { oneOf: [{ pattern: '^a' }, { pattern: 'b$' }], not: { const: 'b' } } },
    [{ a: 1 }, { cb: 1 }, {}],
    [{ ab: 1 }, { b: 1 }, { c: 1 }],
  ],
  [
    'two contains',
    { type: 'array', maxItems: 3, allOf: [{ contains: I }, { contains: S, maxContains: 1 }] },
    [
      [1, 'a'],
      ['a', 1, 2],
    ],
    [[1], ['a'], ['a', 1, 'b']],
  ],
  [
    'listed values beside a negation that cannot be expressed',
    { enum: [[1, 1], [1, 2], { a: 0 }], not: { uniqueItems: true, type: 'array' } },
    [[1, 1], { a: 0 }],
    [[1, 2]],
  ],
  ['nullable of OpenAPI', { type: 'string', nullable: true }, ['a', null], [1]],
  ['not a number, twice', { not: { type: ['integer', 'number', 'object'] } }, ['a', null, []], [1, 1.5, {}]],
  [
    'dependencies of properties named like annotations',
    object({
      p: object({ title: S, description: S, a: I }, [], { dependentRequired: { title: ['a'] } }),
      q: object({ title: S, description: S, a: I }, [], { dependentRequired: { description: ['a'] } }),
    }),
    [{ p: { description: 'x' }, q: { title: 'x' } }],
    [{ p: { title: 'x' } }, { q: { description: 'x' } }],
  ],
  [
    'oneOf beside what alternatives evaluate',
    {
      type: 'object',
      oneOf: [
        { anyOf: [{ properties: { a: S } }, { properties: { b: S } }], unevaluatedProperties: false },
        { properties: { a: true }, required: ['a'] },
      ],
    },
    [{ b: 'x' }, {}],
    [{ a: 'x' }, { a: 'x', b: 'y' }],
  ],
  ['contains in no array', { type: 'array', contains: I, minContains: 0, maxItems: 0 }, [[]], [[1], ['a']]],
  [
    'contains in fewer items than are listed',
    { type: 'array', prefixItems: [S, I, I], contains: S, maxItems: 1 },
    [['a']],
    [['a', 1], ['a', 1, 2], [1]],
  ],
  [
    'contains in less than no items',
    { anyOf: [{ type: 'array', contains: true, not: { minItems: 0 } }, { type: 'null' }] },
    [null],
    [[], [1]],
  ],
  ...[
    ['hostname', 'a-', 'a.b.c.d.e'],
    ['date-time', '2016-12-31', '2016-12-31T23:59:60Z'],
    ['time', 'noon', '12:00:00.1234567890Z'],
    ['duration', 'P', 'P1234567890D'],
    ['uri', '//a', 'http://[::1]/'],
    ['uuid', 'a', 'urn:uuid:123e4567-e89b-12d3-a456-426614174000'],
  ].flatMap(([format, other, valid]): Row[] => [
    [`no ${format}, although not all are generated`, { ...S, not: { format } }, [other], [valid]],
    [`no listed ${format}`, { enum: [other, valid], not: { format } }, [other], [valid]],
    [
      `no name that is a ${format}`,
      object({ [other!]: I, [valid!]: I }, [], { propertyNames: { not: { format } } }),
      [{ [other!]: 1 }],
      [{ [valid!]: 1 }],
    ],
    [
      `either a ${format} or another text`,
      { ...S, oneOf: [{ format }, { enum: [other, valid] }] },
      [other],
      [valid],
    ],
  ]),
  [
    'url',
    { ...S, format: 'url' },
    ['https://a-b.example.com:80/x//y?z=/#?', 'ftp://b.co'],
    ['mailto:a@b.co', 'b.co', 'http://b', 'http://a--b.co'],
  ],
  ['template of a URI', { ...S, format: 'uri-template' }, ['/a{?b*,c:3}'], ["it's", '{']],
];

const toCase = ([name, schema, valid, invalid]: Row): SchemaCase => ({ name, schema, valid, invalid });

export const SCHEMA_CASES: readonly SchemaCase[] = [
  ...TYPES,
  ...STRINGS,
  ...NUMBERS,
  ...OBJECTS,
  ...ARRAYS,
  ...COMBINED,
  ...REFERENCES,
  ...REAL,
  ...CONDITIONS,
].map(toCase);
