import fc from 'fast-check';
import { expect, it } from 'vitest';
import { compileProgram } from '../../../origin/grammar/compile.ts';
import { GrammarRuntime } from '../../../origin/grammar/runtime/grammar-runtime.ts';
import { GrammarVocabulary } from '../../../origin/grammar/runtime/grammar-vocabulary.ts';
import { ApiError } from '../../../shared/errors.ts';
import { ajvValidator } from '../../support/grammar/ajv-validator.ts';
import { randomText } from '../../support/grammar/random-walk.ts';
import { smallVocabulary } from '../../support/grammar/vocabularies.ts';
import { randomFrom, runs, TEST_SEED } from '../../support/random.ts';

const tokens = smallVocabulary();
const vocabulary = new GrammarVocabulary(tokens);

const keys = fc.constantFrom('a', 'b', 'c');
const leaf = fc.oneof(
  fc.constantFrom({ type: 'integer' }, { type: 'string' }, { type: 'boolean' }, { type: 'null' }, true, {}),
  fc.record({ type: fc.constant('integer'), minimum: fc.nat(4), maximum: fc.integer({ min: 3, max: 9 }) }),
  fc.record({ type: fc.constant('string'), maxLength: fc.nat(3) }),
  fc.record({ type: fc.constant('string'), pattern: fc.constantFrom('^a', 'b$', '^[ab]*$') }),
  fc.record({ enum: fc.uniqueArray(fc.constantFrom(1, 2, 'a', 'b', true, null), { minLength: 1 }) }),
  fc.constant({ type: 'number', multipleOf: 0.5, minimum: -1, maximum: 2 }),
  fc.constantFrom({ type: 'number', not: { multipleOf: 0.5 } }, { not: { type: 'integer' } }),
);

const names = fc.oneof(
  fc.constantFrom(
    { pattern: '^[a-d]' },
    { not: { pattern: '^d' } },
    { enum: ['a', 'b', 'e'] },
    { maxLength: 2 },
  ),
  fc.constant({ oneOf: [{ pattern: '^a' }, { pattern: 'd$' }, { const: 'b' }] }),
);

/** Small schemas that combine all keywords, so that they contradict and overlap each other often. */
const { schema } = fc.letrec<{ schema: unknown }>((tie) => {
  const sub = tie('schema');
  const list = fc.array(sub, { minLength: 1, maxLength: 3 });
  const properties = fc.dictionary(keys, sub, { maxKeys: 3 });
  const combined = fc.record(
    {
      type: fc.constant('object'),
      properties,
      required: fc.uniqueArray(keys, { maxLength: 2 }),
      dependentRequired: fc.dictionary(keys, fc.uniqueArray(keys, { maxLength: 2 }), { maxKeys: 2 }),
      dependentSchemas: fc.dictionary(keys, sub, { maxKeys: 1 }),
      patternProperties: fc.dictionary(fc.constantFrom('^[ab]', 'c', 'd$'), sub, { maxKeys: 2 }),
      additionalProperties: sub,
      unevaluatedProperties: sub,
      propertyNames: names,
      minProperties: fc.nat(3),
      maxProperties: fc.integer({ min: 1, max: 3 }),
      not: sub,
      oneOf: list,
      anyOf: list,
      if: sub,
      // biome-ignore lint/suspicious/noThenProperty: JSON Schema names the keyword
      then: sub,
      else: sub,
    },
    { requiredKeys: ['type', 'properties'] },
  );
  const array = fc.record(
    {
      type: fc.constant('array'),
      prefixItems: fc.array(sub, { minLength: 1, maxLength: 2 }),
      items: sub,
      unevaluatedItems: sub,
      contains: sub,
      maxContains: fc.integer({ min: 1, max: 2 }),
      allOf: fc.tuple(fc.record({ contains: sub })),
      minItems: fc.nat(2),
      maxItems: fc.constant(3),
      not: sub,
    },
    { requiredKeys: ['type', 'maxItems'] },
  );
  const scalar = fc.record({ oneOf: list, not: sub }, { requiredKeys: [] });
  return {
    schema: fc.oneof(
      { maxDepth: 2, withCrossShrink: true },
      { weight: 4, arbitrary: leaf },
      { weight: 4, arbitrary: combined },
      { weight: 2, arbitrary: array },
      { weight: 1, arbitrary: scalar },
    ),
  };
});

/** Texts of a schema, or null if it is refused. */
function generate(value: unknown, objects: object): string[] | null {
  try {
    const grammar = new GrammarRuntime(
      compileProgram({ type: 'json_schema', value, ...objects }),
      vocabulary,
    );
    const random = randomFrom(TEST_SEED);
    const options = { tokens, random, patience: 10, limit: 300 };
    return Array.from({ length: 4 }, () => randomText(grammar.start(), options)).filter(
      (text) => text !== null,
    );
  } catch (error) {
    if (error instanceof ApiError) return null;
    throw error;
  }
}

it.each([
  ['closed', 0],
  ['open', 1],
])('generates only valid values of any schema that it does not refuse, with %s objects', (kind, number) => {
  let texts = 0;
  fc.assert(
    fc.property(schema, fc.boolean(), (value, anyKeyOrder) => {
      const generated = generate(value, { openObjects: kind === 'open', anyKeyOrder });
      if (generated === null) return;
      const isValid = ajvValidator(value);
      for (const text of generated) {
        texts++;
        expect(isValid(JSON.parse(text)), text).toBe(true);
      }
    }),
    // Other schemas for each.
    { numRuns: runs(100), seed: TEST_SEED + number },
  );
  // Few of ten schemas may be accepted, but not none.
  expect(texts).toBeGreaterThan(runs(100) / 4);
});
