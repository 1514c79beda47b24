import { describe, expect, it } from 'vitest';
import { GrammarVocabulary } from '../../../origin/grammar/runtime/grammar-vocabulary.ts';
import { firstDifference } from '../../support/grammar/compare-masks.ts';
import { compileConstraint } from '../../support/grammar/compile-constraint.ts';
import { GBNF_CASES } from '../../support/grammar/gbnf-cases.ts';
import { bnfOfGbnf } from '../../support/grammar/oracle/gbnf-to-bnf.ts';
import { smallVocabulary } from '../../support/grammar/vocabularies.ts';
import { randomFrom } from '../../support/random.ts';

describe('masks of a GBNF grammar equal the Earley oracle in every bit', () => {
  const tokens = smallVocabulary();
  const vocabulary = new GrammarVocabulary(tokens);

  it('has at least sixty grammars to compare', () => {
    expect(Object.keys(GBNF_CASES).length).toBeGreaterThanOrEqual(60);
  });

  it.each(Object.entries(GBNF_CASES))('%s', (_name, source) => {
    const grammar = compileConstraint({ type: 'gbnf', value: source }, vocabulary);
    const options = { tokens, random: randomFrom(7), walks: 3, steps: 12 };
    const { difference, compared } = firstDifference(() => grammar.start(), bnfOfGbnf(source), options);
    expect(difference).toBeNull();
    expect(compared).toBeGreaterThan(0);
  });
});
