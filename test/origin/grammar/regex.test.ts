import { describe, expect, it } from 'vitest';
import { WorkBudget } from '../../../origin/grammar/automaton/work-budget.ts';
import { compileProgram } from '../../../origin/grammar/compile.ts';
import { wholeMatchExpression } from '../../../origin/grammar/regex/regex-automaton.ts';
import { parseRegex } from '../../../origin/grammar/regex/regex-parser.ts';
import { GrammarVocabulary } from '../../../origin/grammar/runtime/grammar-vocabulary.ts';
import { acceptsText } from '../../support/grammar/acceptance.ts';
import { firstDifference } from '../../support/grammar/compare-masks.ts';
import { compileConstraint } from '../../support/grammar/compile-constraint.ts';
import { bnfOfGrammar } from '../../support/grammar/oracle/expression-to-bnf.ts';
import { randomText } from '../../support/grammar/random-walk.ts';
import { REGEX_CASES, REGEX_FAULTS } from '../../support/grammar/regex-cases.ts';
import { smallVocabulary } from '../../support/grammar/vocabularies.ts';
import { randomFrom } from '../../support/random.ts';

const tokens = smallVocabulary();
const vocabulary = new GrammarVocabulary(tokens);
const LETTERS = [
  'a',
  'b',
  'c',
  'd',
  'x',
  '1',
  '0',
  '-',
  '.',
  ' ',
  '\n',
  '"',
  '\\',
  'é',
  '日',
  '😀',
  'A',
  '@',
  '<',
  '>',
  '/',
  '_',
  'α',
];

describe.each(REGEX_CASES)('regular expression %s', (source) => {
  const grammar = compileConstraint({ type: 'regex', value: source }, vocabulary);
  const native = new RegExp(`^(?:${source})$`, 'u');

  it('generates only texts that match as a whole', () => {
    const random = randomFrom(4);
    for (let i = 0; i < 12; i++) {
      const text = randomText(grammar.start(), { tokens, random, patience: 10, limit: 500 });
      if (text !== null) expect(native.test(text), JSON.stringify(text)).toBe(true);
    }
  });

  it('accepts exactly the random texts that match', () => {
    const random = randomFrom(9);
    const alphabet = [
      ...LETTERS.filter(() => random() < 0.3),
      ...Array.from(source.replace(/[^\p{L}\p{N}]/gu, '')),
    ];
    for (let i = 0; i < 60 && alphabet.length > 0; i++) {
      const length = Math.floor(random() * 6);
      const text = Array.from({ length }, () => alphabet[Math.floor(random() * alphabet.length)]!).join('');
      expect(acceptsText(grammar, text, tokens), JSON.stringify(text)).toBe(native.test(text));
    }
  });

  it('has masks that equal the oracle in every bit', () => {
    const budget = new WorkBudget(1e9);
    const bnf = bnfOfGrammar({ rules: [wholeMatchExpression(parseRegex(source, budget), budget)], root: 0 });
    const { difference } = firstDifference(() => grammar.start(), bnf, {
      tokens,
      random: randomFrom(6),
      walks: 2,
      steps: 6,
    });
    expect(difference).toBeNull();
  });
});

it('takes letters of all cases for each other as JavaScript does', () => {
  const cased = Array.from({ length: 0x1ffff }, (_, c) => String.fromCodePoint(c)).filter((char) =>
    /\p{Changes_When_Casemapped}/u.test(char),
  );
  for (const one of ['s', '[^s]', '\\W', '[\\w]', '\u2126', 'ß', 'ı', 'Σ', '[^a-z]', '\\P{Lu}', '(?=\\b).']) {
    const accepts = acceptsText.bind(
      null,
      compileConstraint({ type: 'regex', value: `(?i:${one})` }, vocabulary),
    );
    const native = new RegExp(`^${one}$`, 'iu');
    expect(
      cased.filter((char) => accepts(char, tokens) !== native.test(char)),
      one,
    ).toEqual([]);
  }
});

it.each(REGEX_FAULTS)('refuses %s, naming the position', (source, message) => {
  expect(() => compileProgram({ type: 'regex', value: source })).toThrow(message);
});
