import type { WireConstraint } from '../../../shared/generation.ts';

/** Constraints that try to exhaust the compiler or the parser. Each must be compiled or refused in time. */
export interface HostileCase {
  readonly name: string;
  readonly wire: () => WireConstraint;
}

const gbnf = (value: string): WireConstraint => ({ type: 'gbnf', value });
const regex = (value: string): WireConstraint => ({ type: 'regex', value });
const lark = (value: string): WireConstraint => ({ type: 'lark', value });
const schema = (value: unknown): WireConstraint => ({ type: 'json_schema', value });
const lines = (count: number, line: (i: number) => string): string =>
  Array.from({ length: count }, (_, i) => line(i)).join('\n');
const nest = (depth: number, wrap: (inner: unknown) => unknown, core: unknown): unknown => {
  let value = core;
  for (let i = 0; i < depth; i++) value = wrap(value);
  return value;
};

const CASES: Readonly<Record<string, () => WireConstraint>> = {
  'regex: nested plus': () => regex('(a+)+$'),
  'regex: nested stars ten deep': () => regex(`${'('.repeat(10)}a${'*)'.repeat(10)}*b`),
  'regex: subset blow-up of 2^20': () => regex('(a|b)*a(a|b){20}'),
  'regex: subset blow-up of 2^200': () => regex('(a|b)*a(a|b){200}'),
  'regex: subset blow-up in the middle': () => regex('.*a.{25}b.*c.{25}d'),
  'regex: nested counts of a million million': () => regex('((a{1000}){1000}){1000}'),
  'regex: nested optional counts': () => regex('(((a{0,100}){0,100}){0,100}){0,100}'),
  'regex: a million repetitions': () => regex('[a-z]{1000000}'),
  'regex: too many repetitions': () => regex('a{99999999999}'),
  'regex: nested counts inside anchors': () => regex('(^|a)((b{50}){50}){50}($|c)'),
  'regex: 100,000 alternatives': () => regex(Array.from({ length: 100_000 }, (_, i) => `w${i}`).join('|')),
  'regex: 100,000 groups': () => regex('(a)'.repeat(100_000)),
  'regex: 100,000 nested groups': () => regex('('.repeat(100_000) + ')'.repeat(100_000)),
  'regex: Unicode properties again and again': () => regex('\\p{L}'.repeat(300)),
  'regex: Unicode properties counted': () => regex('(\\p{L}\\p{N}){500}'),
  'regex: negated class counted': () => regex('[^\\p{L}\\p{M}]{2,500}x[^a-é]{500}'),
  'regex: overlapping alternatives of everything': () =>
    regex(`(${Array.from({ length: 30 }, (_, i) => `.{${i}}x`).join('|')})*`),
  'regex: a megabyte of letters': () => regex('a'.repeat(1_000_001)),
  'regex: NUL bytes': () => regex('\0\\0[\0-\u0001]'),
  'regex: lone surrogates': () => regex('[\ud800-\udfff]'),
  'grammar: 20,000 rules in a chain': () =>
    gbnf(`root ::= r0\n${lines(20_000, (i) => `r${i} ::= "a" r${i + 1}`)}\nr20000 ::= "b"`),
  'grammar: 20,000 rules that only pass on': () =>
    gbnf(`root ::= r0\n${lines(20_000, (i) => `r${i} ::= r${i + 1}`)}\nr20000 ::= "b"`),
  'grammar: 20,000 alternatives that are rules': () =>
    gbnf(
      `root ::= ${Array.from({ length: 20_000 }, (_, i) => `r${i}`).join(' | ')}\n${lines(20_000, (i) => `r${i} ::= "a" r${(i * 7) % 20_000} "b" | "c${i}"`)}`,
    ),
  'grammar: doubling rules': () =>
    gbnf(`root ::= r0\n${lines(40, (i) => `r${i} ::= r${i + 1} r${i + 1}`)}\nr40 ::= "a"`),
  'grammar: doubling optional rules': () =>
    gbnf(`root ::= r0\n${lines(40, (i) => `r${i} ::= r${i + 1}? r${i + 1}?`)}\nr40 ::= "a"`),
  'grammar: nested counts': () => gbnf('root ::= (((("a"{2000}){2000}){2000}){2000}){2000}'),
  'grammar: ambiguous sums': () => gbnf('root ::= root root | "a" | "aa" | "aaa"'),
  'grammar: ambiguous nullables': () =>
    gbnf('root ::= a*\na ::= b* c*\nb ::= "a"? c?\nc ::= "a"? | root "a"'),
  'grammar: hidden recursion on both sides': () => gbnf('root ::= e root e "x" | "y"\ne ::= "" | "x" | e e'),
  'grammar: all rules begin with all rules': () =>
    gbnf(
      `root ::= r0\n${lines(150, (i) => `r${i} ::= ${Array.from({ length: 150 }, (_, j) => `r${j} "${i}"`).join(' | ')} | "a"`)}`,
    ),
  'grammar: every rule may be empty': () =>
    gbnf(
      `root ::= r0\n${lines(200, (i) => `r${i} ::= (r${(i * 3 + 1) % 200} | r${(i * 5 + 2) % 200} | "a")*`)}`,
    ),
  'grammar: no rule ends': () =>
    gbnf(`root ::= r0\n${lines(1000, (i) => `r${i} ::= "a" r${(i + 1) % 1000}`)}`),
  'grammar: 100,000 nested groups': () => gbnf(`root ::= ${'('.repeat(100_000)}"a"${')'.repeat(100_000)}`),
  'grammar: 100,000 quantifiers': () => gbnf(`root ::= "a"${'?'.repeat(100_000)}`),
  'grammar: a name of a megabyte': () => gbnf(`root ::= ${'r'.repeat(999_000)}`),
  'grammar: 5,000 ranges': () =>
    gbnf(
      `root ::= [${Array.from({ length: 5000 }, (_, i) => String.fromCodePoint(0x100 + 3 * i)).join('')}]*`,
    ),
  'grammar: NUL and broken characters': () => gbnf('root ::= "\0\ud800"'),
  'grammar: empty': () => gbnf(''),
  'grammar: palindromes': () => gbnf('root ::= [a-z] root [a-z] | [a-z] root [a-c] | ""'),
  'grammar: deep right recursion with a tail': () => gbnf('root ::= [a-z] root [0-9]? | "!"'),
  'Lark: doubling terminals in %ignore': () =>
    lark(`start: "a"\n%ignore T0\n${lines(40, (i) => `T${i}: T${i + 1} T${i + 1}`)}\nT40: "x"`),
  'Lark: terminal of itself in %ignore': () => lark('start: "a"\n%ignore T\nT: "x" T | "y"'),
  'Lark: 100,000 empty lines': () => lark(`start: "a"${'\n \t'.repeat(100_000)}| "b"`),
  'Lark: slashes': () => lark(`start: ${'/'.repeat(50_000)}`),
  'Lark: ignored loops': () => lark('start: ("a" | " ")*\n%ignore (" "+)+\n%ignore (" " " ")+'),
  'schema: 2,000 deep': () =>
    schema(nest(2000, (inner) => ({ type: 'object', properties: { a: inner } }), {})),
  'schema: arrays 2,000 deep': () => schema(nest(2000, (inner) => ({ type: 'array', items: inner }), true)),
  'schema: allOf 2,000 deep': () => schema(nest(2000, (inner) => ({ allOf: [inner] }), { type: 'null' })),
  'schema: enum of 50,000': () => schema({ enum: Array.from({ length: 50_000 }, (_, i) => `value ${i}`) }),
  'schema: enum of 20,000 objects': () =>
    schema({ enum: Array.from({ length: 20_000 }, (_, i) => ({ id: i })) }),
  'schema: 5,000 optional properties': () =>
    schema({
      type: 'object',
      properties: Object.fromEntries(Array.from({ length: 5000 }, (_, i) => [`p${i}`, { type: 'integer' }])),
    }),
  'schema: 2,000 optional properties, counted': () =>
    schema({
      type: 'object',
      maxProperties: 100,
      properties: Object.fromEntries(Array.from({ length: 2000 }, (_, i) => [`p${i}`, {}])),
    }),
  'schema: cyclic $ref': () => schema({ $ref: '#' }),
  'schema: cyclic $ref through allOf': () =>
    schema({ $defs: { a: { allOf: [{ $ref: '#/$defs/b' }] }, b: { $ref: '#/$defs/a' } }, $ref: '#/$defs/a' }),
  'schema: recursion without end': () =>
    schema({ type: 'object', properties: { a: { $ref: '#' } }, required: ['a'] }),
  'schema: 20 lists of 20 alternatives': () =>
    schema({
      allOf: Array.from({ length: 20 }, (_, i) => ({
        anyOf: Array.from({ length: 20 }, (_, j) => ({
          properties: { [`a${i}_${j}`]: { const: j } },
          required: [`a${i}_${j}`],
        })),
      })),
    }),
  'schema: oneOf of 500 objects': () =>
    schema({
      oneOf: Array.from({ length: 500 }, (_, i) => ({
        type: 'object',
        properties: { kind: { const: `k${i}` }, v: {} },
        required: ['kind'],
      })),
    }),
  'schema: allOf that doubles': () =>
    schema({
      $defs: Object.fromEntries(
        Array.from({ length: 40 }, (_, i) => [
          `d${i}`,
          i === 39 ? {} : { allOf: [{ $ref: `#/$defs/d${i + 1}` }, { $ref: `#/$defs/d${i + 1}` }] },
        ]),
      ),
      $ref: '#/$defs/d0',
    }),
  'schema: pattern with subset blow-up': () => schema({ type: 'string', pattern: '(a|b)*a(a|b){30}$' }),
  'schema: patterns that multiply': () =>
    schema({ allOf: [7, 11, 13, 17, 19, 23].map((n) => ({ type: 'string', pattern: `^(a{${n}})*$` })) }),
  'schema: pattern with a long length': () =>
    schema({ type: 'string', pattern: '^[a-z]*[0-9]*[a-z]*$', maxLength: 1_000_000 }),
  'schema: maxLength of a thousand million': () =>
    schema({ type: 'string', minLength: 999_999_999, maxLength: 1_000_000_000 }),
  'schema: minItems of a million million': () =>
    schema({ type: 'array', items: { type: 'array', minItems: 1e12 }, minItems: 1e12 }),
  'schema: nested maxItems': () =>
    schema(nest(30, (inner) => ({ type: 'array', items: inner, maxItems: 1000 }), { type: 'null' })),
  'schema: multipleOf of a prime': () =>
    schema({ type: 'integer', multipleOf: 99_991, minimum: 12_345, maximum: 1e15 }),
  'schema: bounds of 300 digits': () => schema({ type: 'number', minimum: -1e300, maximum: 1e300 }),
  'schema: many pattern properties': () =>
    schema({
      type: 'object',
      patternProperties: Object.fromEntries(Array.from({ length: 60 }, (_, i) => [`^a{${i}}`, {}])),
    }),
  'schema: many additional property exclusions': () =>
    schema({
      type: 'object',
      additionalProperties: true,
      properties: Object.fromEntries(
        Array.from({ length: 3000 }, (_, i) => [`${'k'.repeat(i % 50)}${i}`, true]),
      ),
    }),
  'schema: not a schema': () => schema([1, 2]),
  'schema: null': () => schema(null),
  'choice: 100,000 texts': () => ({
    type: 'choice',
    value: Array.from({ length: 100_000 }, (_, i) => `choice ${i * 7919}`),
  }),
  'choice: one text of a million characters': () => ({ type: 'choice', value: ['x'.repeat(900_000)] }),
};

export const HOSTILE_CASES: readonly HostileCase[] = Object.entries(CASES).map(([name, wire]) => ({
  name,
  wire,
}));
