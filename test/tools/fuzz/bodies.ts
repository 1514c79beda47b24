import * as fc from 'fast-check';
import { completionRequest } from '../../../shared/completion.ts';
import { DOCUMENTED_REQUESTS } from '../../worker/dialects/documents.ts';
import { FIELD_TABLE } from '../../worker/dialects/field-table.ts';

/** The prompt of most bodies. Logs must not contain it. */
export const PROMPT = 'zebra quartz';

const anything = fc.oneof(
  fc.jsonValue({ maxDepth: 3 }),
  fc.constantFrom<unknown>(
    -1,
    0,
    1,
    2,
    5,
    6,
    128,
    129,
    2 ** 31,
    2 ** 53,
    1e308,
    -0.5,
    '',
    'a',
    '\0',
    'a\u2028b\u0085c',
    '\ud800',
    [],
    {},
    null,
    true,
  ),
);

/** Good and bad values of the table, so that bodies pass the first check. */
const known = (field: string): fc.Arbitrary<unknown> => {
  const row = Object.hasOwn(FIELD_TABLE, field) ? FIELD_TABLE[field] : undefined;
  const values = [...(row?.good ?? []), ...(row?.bad.map(([value]) => value) ?? [])];
  const small = values.filter((value) => (JSON.stringify(value)?.length ?? 0) < 10_000);
  return small.length === 0
    ? anything
    : fc.oneof({ weight: 3, arbitrary: fc.constantFrom(...small) }, anything);
};

const field = fc
  .oneof(
    { weight: 9, arbitrary: fc.constantFrom(...Object.keys(completionRequest.shape)) },
    fc.constantFrom('priority', '__proto__', 'constructor', 'toString', 'zzz'),
  )
  .chain((name) => known(name).map((value) => [name, value] as const));

const object = fc
  .record({
    base: fc.constantFrom({ model: 'default', prompt: PROMPT }, {}, ...Object.values(DOCUMENTED_REQUESTS)),
    named: fc.boolean(),
    fields: fc.array(field, { maxLength: 6 }),
  })
  .map(({ base, named, fields }) => {
    const body = { ...base, ...(named ? { model: 'default' } : {}) };
    return JSON.stringify(Object.assign(body, Object.fromEntries(fields)));
  });

/** Valid bodies, so that enough of them reach the origin. */
const sound = fc.constantFrom(
  ...Object.entries(FIELD_TABLE)
    .flatMap(([name, { good, beside }]) =>
      good.map((value) => ({ model: 'default', prompt: PROMPT, ...beside, [name]: value })),
    )
    .map((fields) => JSON.stringify(fields))
    .filter((text) => text.length < 10_000),
);

/** Valid JSON with some bytes changed, removed or repeated. */
const mutated = fc
  .record({ text: object, at: fc.nat(400), length: fc.nat(8), put: fc.uint8Array({ maxLength: 8 }) })
  .map(({ text, at, length, put }) => {
    const bytes = Buffer.from(text);
    return Buffer.concat([bytes.subarray(0, at), put, bytes.subarray(at + length)]);
  });

const nested = fc
  .record({
    depth: fc.integer({ min: 1, max: 20_000 }),
    name: fc.constantFrom('prompt', 'json_schema', 'stop', 'zzz', 'tools'),
  })
  .map(
    ({ depth, name }) =>
      `{"model":"default","prompt":"a","${name}":${'['.repeat(depth)}${']'.repeat(depth)}}`,
  );

/**
 * Request bodies: of fields with good and bad values, valid ones, mutated ones, deep ones, and random bytes.
 */
export const bodies: fc.Arbitrary<Uint8Array> = fc.oneof(
  { weight: 6, arbitrary: object.map((text) => Buffer.from(text)) },
  { weight: 3, arbitrary: sound.map((text) => Buffer.from(text)) },
  { weight: 3, arbitrary: mutated },
  { weight: 1, arbitrary: fc.uint8Array({ maxLength: 200 }) },
  { weight: 1, arbitrary: nested.map((text) => Buffer.from(text)) },
);
