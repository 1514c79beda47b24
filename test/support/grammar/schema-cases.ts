import { readFileSync } from 'node:fs';

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

/** Whose schema is long or computed. */
const LONGER: readonly Row[] = [
  ['long maxLength', { type: 'string', maxLength: 500 }, ['', 'a'.repeat(500)], ['a'.repeat(501)]],
  [
    'very long maxLength',
    { type: 'string', minLength: 3, maxLength: 65535 },
    ['abc', 'a'.repeat(3000)],
    ['ab'],
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
  ...['password', 'binary', 'path', 'file-path', 'directory-path'].map(
    (format): Row => [
      `a format that is a hint: ${format}`,
      { type: 'string', format, minLength: 1 },
      ['~/a b', '…', 'x'.repeat(400)],
      ['', 1, null],
    ],
  ),
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
  ['minimum of -0', { type: 'number', minimum: -0 }, [0, 1], [-1]],
  [
    'properties named like those of every object',
    object({ toString: object({ length: S }), constructor: I, hasOwnProperty: B }, ['toString']),
    [{ toString: { length: 'a' } }, { toString: {}, constructor: 1 }],
    [{}, { toString: {}, constructor: 'a' }, { toString: { length: 1 } }],
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
    'minProperties of declared and undeclared keys',
    object({ a: I }, [], { additionalProperties: { type: 'object', minProperties: 2 }, minProperties: 3 }),
    [{ a: 1, b: { x: 1, y: 'z' }, c: { y: {}, z: [] } }],
    [
      { a: 1, b: { x: 1, y: 2 } },
      { a: 1, b: { x: 1 }, c: { x: 1, y: 2 } },
    ],
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
  [
    'large maxItems',
    { type: 'array', items: I, maxItems: 3000 },
    [[], Array.from({ length: 50 }, () => 1)],
    [Array.from({ length: 3001 }, () => 1)],
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
    'allOf with additionalProperties false',
    { allOf: [object({ a: I }, [], { additionalProperties: false }), object({ a: { minimum: 3 }, b: S })] },
    [{ a: 3 }, {}],
    [{ a: 1 }, { b: 'x' }],
  ],
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
  [
    'dependencies of draft 7',
    {
      $schema: 'http://json-schema.org/draft-07/schema#',
      ...object({ a: I, b: I, c: I }, [], { dependencies: { a: ['b'], b: { required: ['c'] } } }),
    },
    [{}, { c: 1 }, { a: 1, b: 1, c: 1 }],
    [{ a: 1 }, { b: 1 }, { a: 1, b: 1 }],
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
];

/** Each is a line of its own. */
const SHORT = readFileSync(new URL('./schema-cases.jsonl', import.meta.url), 'utf8')
  .trim()
  .split('\n');

export const SCHEMA_CASES: readonly SchemaCase[] = [
  ...SHORT.map((line) => JSON.parse(line) as SchemaCase),
  ...LONGER.map(([name, schema, valid, invalid]) => ({ name, schema, valid, invalid })),
];
