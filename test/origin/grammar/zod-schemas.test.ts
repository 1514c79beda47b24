import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { GrammarVocabulary } from '../../../origin/grammar/runtime/grammar-vocabulary.ts';
import { compileConstraint } from '../../support/grammar/compile-constraint.ts';
import { randomText } from '../../support/grammar/random-walk.ts';
import { smallVocabulary } from '../../support/grammar/vocabularies.ts';
import { randomFrom, runs } from '../../support/random.ts';

const tokens = smallVocabulary();
const vocabulary = new GrammarVocabulary(tokens);

const everyNth = <T>(all: readonly T[], nth: number): T[] =>
  all.filter((_, index) => Math.floor(index / nth) !== Math.floor((index - 1) / nth));

const point = z.object({ x: z.number(), y: z.number().optional() });
const cat = z.object({ kind: z.literal('cat'), lives: z.int().min(1).max(9) });
const dog = z.object({ kind: z.literal(['dog', 'wolf']), name: z.string() });
const category = z.object({
  name: z.string(),
  get children() {
    return z.array(category);
  },
});
const direction = { Up: 'UP', Down: 'DOWN' } as const;

/** The types of zod that JSON Schema can express. */
const CATALOGUE: Readonly<Record<string, z.ZodType>> = {
  string: z.string(),
  number: z.number(),
  boolean: z.boolean(),
  null: z.null(),
  any: z.any(),
  unknown: z.unknown(),
  int: z.int(),
  int32: z.int32(),
  uint32: z.uint32(),
  float32: z.float32(),
  float64: z.float64(),
  'string lengths': z.string().min(1).max(5),
  'string length': z.string().length(3),
  regex: z.string().regex(/^[a-z]+-\d{2}$/),
  startsWith: z.string().startsWith('ab'),
  endsWith: z.string().endsWith('yz'),
  includes: z.string().includes('mid'),
  lowercase: z.string().lowercase(),
  uppercase: z.string().uppercase(),
  'template literal': z.templateLiteral(['id-', z.number(), z.enum(['px', 'em'])]),
  email: z.email(),
  'email html5': z.email({ pattern: z.regexes.html5Email }),
  uuid: z.uuid(),
  uuidv4: z.uuidv4(),
  uuidv6: z.uuidv6(),
  uuidv7: z.uuidv7(),
  guid: z.guid(),
  hostname: z.hostname(),
  url: z.url(),
  httpUrl: z.httpUrl(),
  emoji: z.emoji(),
  nanoid: z.nanoid(),
  cuid: z.cuid(),
  cuid2: z.cuid2(),
  ulid: z.ulid(),
  xid: z.xid(),
  ksuid: z.ksuid(),
  ipv4: z.ipv4(),
  ipv6: z.ipv6(),
  mac: z.mac(),
  cidrv4: z.cidrv4(),
  cidrv6: z.cidrv6(),
  base64: z.base64(),
  base64url: z.base64url(),
  hex: z.hex(),
  hash: z.hash('sha256'),
  jwt: z.jwt(),
  e164: z.e164(),
  'iso date': z.iso.date(),
  'iso time': z.iso.time(),
  'iso datetime': z.iso.datetime(),
  'iso datetime with offset': z.iso.datetime({ offset: true, precision: 3 }),
  'iso duration': z.iso.duration(),
  stringbool: z.stringbool(),
  json: z.json(),
  file: z.file(),
  'number bounds': z.number().gte(-1).lt(5),
  positive: z.number().positive(),
  nonnegative: z.int().nonnegative(),
  negative: z.number().negative(),
  multipleOf: z.number().multipleOf(0.25).min(0).max(10),
  literal: z.literal('a'),
  'literals of several types': z.literal(['a', 1, true, null]),
  enum: z.enum(['a', 'b']),
  'native enum': z.enum(direction),
  exclude: z.enum(['a', 'b', 'c']).exclude(['a']),
  array: z.array(z.string()),
  'array lengths': z.array(z.int()).min(1).max(3),
  tuple: z.tuple([z.string(), z.number()]),
  'tuple with a rest': z.tuple([z.string()], z.boolean()),
  object: point,
  'strict object': z.strictObject({ a: z.string() }),
  'loose object': z.looseObject({ a: z.string() }),
  catchall: z.object({ a: z.string() }).catchall(z.int()),
  'nested object': z.object({ from: point, to: point.nullable() }),
  partial: point.partial(),
  required: point.required(),
  pick: point.pick({ x: true }),
  omit: point.omit({ x: true }),
  extend: point.extend({ z: z.number() }),
  record: z.record(z.string(), z.int()),
  'record of an enum': z.record(z.enum(['a', 'b']), z.int()),
  'partial record': z.partialRecord(z.enum(['a', 'b']), z.int()),
  'record of a pattern': z.record(z.string().regex(/^k\d$/), z.null()),
  optional: z.object({ a: z.string().optional() }),
  nullable: z.string().nullable(),
  nullish: z.object({ a: z.int().nullish() }),
  default: z.object({ a: z.int().default(1) }),
  prefault: z.object({ a: z.string().prefault('x') }),
  catch: z.object({ a: z.int().catch(1) }),
  readonly: z.array(z.int()).readonly(),
  union: z.union([z.string(), z.int(), z.null()]),
  'union of objects': z.union([cat, point]),
  'discriminated union': z.discriminatedUnion('kind', [cat, dog]),
  xor: z.xor([z.object({ a: z.string() }), z.object({ b: z.string() })]),
  intersection: z.intersection(z.looseObject({ a: z.string() }), z.looseObject({ b: z.int() })),
  recursive: category,
  lazy: z.lazy(() => z.array(category)),
  brand: z.string().brand<'Id'>(),
  pipe: z.string().pipe(z.string().min(2)),
  describe: z
    .string()
    .describe('A name')
    .meta({ title: 'Name', examples: ['a'] }),
  never: z.object({ a: z.never().optional() }),
};

/** Types that check more than zod writes into their JSON Schema. */
const LOOSE = ['httpUrl', 'jwt', 'stringbool', 'file'];

const TYPES = Object.entries(CATALOGUE);

/** The first style is that of requests; of the others, a run has its share of the types. */
const STYLES = [
  [{}, TYPES],
  [{ openObjects: true, anyKeyOrder: true }, everyNth(TYPES, TYPES.length / runs(TYPES.length))],
] as const;

describe.each(STYLES)('the types of zod, with %j', (style, types) => {
  it.each(types)('%s: compiles, and zod parses the texts', (name, type) => {
    for (const target of ['draft-7', 'openapi-3.0'] as const)
      compileConstraint(
        { type: 'json_schema', value: z.toJSONSchema(type, { target }), ...style },
        vocabulary,
      );
    const value = z.toJSONSchema(type, { io: 'input' });
    const grammar = compileConstraint({ type: 'json_schema', value, ...style }, vocabulary);
    const options = { tokens, random: randomFrom(5), patience: 10, limit: 400 };
    for (let i = 0; i < 2; i++) {
      const text = randomText(grammar.start(), options);
      if (text !== null && !LOOSE.includes(name))
        expect(type.safeParse(JSON.parse(text)).success, text).toBe(true);
    }
  });
});
