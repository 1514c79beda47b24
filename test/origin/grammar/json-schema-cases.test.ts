import { describe, expect, it } from 'vitest';
import { WorkBudget } from '../../../origin/grammar/automaton/work-budget.ts';
import { jsonSchemaGrammar } from '../../../origin/grammar/json-schema/json-schema.ts';
import type { CompiledGrammar } from '../../../origin/grammar/runtime/constraint.ts';
import { GrammarVocabulary } from '../../../origin/grammar/runtime/grammar-vocabulary.ts';
import { acceptsText } from '../../support/grammar/acceptance.ts';
import { ajvValidator } from '../../support/grammar/ajv-validator.ts';
import { firstDifference } from '../../support/grammar/compare-masks.ts';
import { compileConstraint } from '../../support/grammar/compile-constraint.ts';
import { bnfOfGrammar } from '../../support/grammar/oracle/expression-to-bnf.ts';
import { randomText } from '../../support/grammar/random-walk.ts';
import { SCHEMA_CASES } from '../../support/grammar/schema-cases.ts';
import { smallVocabulary } from '../../support/grammar/vocabularies.ts';
import { randomFrom, runs } from '../../support/random.ts';

const tokens = smallVocabulary();
const vocabulary = new GrammarVocabulary(tokens);
/** TEST_GENERATIONS=1000 generates more. */
const GENERATIONS = Number(process.env.TEST_GENERATIONS ?? runs(8));

it('has at least 150 schemas with distinct names', () => {
  expect(new Set(SCHEMA_CASES.map(({ name }) => name)).size).toBe(SCHEMA_CASES.length);
  expect(SCHEMA_CASES.length).toBeGreaterThanOrEqual(150);
});

describe.each(SCHEMA_CASES)('schema: $name', ({ schema, valid, invalid }) => {
  let compiled: CompiledGrammar | undefined;
  const compile = (): CompiledGrammar =>
    (compiled ??= compileConstraint({ type: 'json_schema', value: schema }, vocabulary));
  const isValid = ajvValidator(schema);

  it('accepts valid values and refuses invalid ones', () => {
    const grammar = compile();
    for (const value of valid) {
      expect(isValid(value), `ajv: ${JSON.stringify(value)}`).toBe(true);
      expect(acceptsText(grammar, JSON.stringify(value), tokens), JSON.stringify(value)).toBe(true);
    }
    for (const value of invalid) {
      expect(isValid(value), `ajv: ${JSON.stringify(value)}`).toBe(false);
      expect(acceptsText(grammar, JSON.stringify(value), tokens), JSON.stringify(value)).toBe(false);
    }
  });

  it('has masks that equal the oracle in every bit', () => {
    const grammar = compile();
    const bnf = bnfOfGrammar(jsonSchemaGrammar(schema, new WorkBudget(1e9)));
    const options = { tokens, random: randomFrom(3), walks: 1, steps: 1 + runs(5) };
    const { difference, compared } = firstDifference(() => grammar.start(), bnf, options);
    expect(difference).toBeNull();
    expect(compared).toBeGreaterThan(0);
  });

  it('generates only texts that parse and validate', () => {
    const grammar = compile();
    const random = randomFrom(11);
    const characters = JSON.stringify(valid);
    // JSON.parse rounds integers above 2^53, so ajv cannot decide whether they are multiples of another
    // number.
    const beyondAjv = JSON.stringify(schema).includes('multipleOf') ? /\d{16}/ : null;
    let finished = 0;
    for (let attempts = 0; finished < GENERATIONS; attempts++) {
      expect(attempts).toBeLessThan(20 * GENERATIONS);
      const text = randomText(grammar.start(), { tokens, random, patience: 20, limit: 1500, characters });
      if (text === null || beyondAjv?.test(text)) continue;
      finished++;
      expect(isValid(JSON.parse(text)), text).toBe(true);
    }
  });
});
