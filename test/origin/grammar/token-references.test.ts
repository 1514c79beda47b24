import { describe, expect, it } from 'vitest';
import { WorkBudget } from '../../../origin/grammar/automaton/work-budget.ts';
import { parseGbnf } from '../../../origin/grammar/gbnf/gbnf-parser.ts';
import { larkGrammar } from '../../../origin/grammar/lark/llguidance.ts';
import { GrammarVocabulary } from '../../../origin/grammar/runtime/grammar-vocabulary.ts';
import { firstDifference } from '../../support/grammar/compare-masks.ts';
import { compileConstraint } from '../../support/grammar/compile-constraint.ts';
import { bnfOfGrammar } from '../../support/grammar/oracle/expression-to-bnf.ts';
import { allowedTokens } from '../../support/grammar/random-walk.ts';
import { smallVocabulary, tokenTable } from '../../support/grammar/vocabularies.ts';
import { randomFrom, runs } from '../../support/random.ts';

describe('masks of a grammar that refers to tokens equal the oracle in every bit', () => {
  const tokens = smallVocabulary();
  const vocabulary = new GrammarVocabulary(tokens);
  const options = { tokens, walks: runs(4), steps: 10 };

  it.each([
    'root ::= <[0]> "ab"* <[1]>',
    'root ::= <[0]> (!<[1]>)* <[1]>',
    'root ::= ("a" | <[101]> | <[3]> "c")* !<[0]>',
    'root ::= [a-c]{0,40} <[0]> root | "."',
    'root ::= !<[5]>{3}',
  ])('GBNF: %s', (source) => {
    const grammar = compileConstraint({ type: 'gbnf', value: source }, vocabulary);
    const bnf = bnfOfGrammar(parseGbnf(source));
    expect(
      firstDifference(() => grammar.start(), bnf, { ...options, random: randomFrom(3) }).difference,
    ).toBe(null);
  });

  it.each([
    'start: <[0-1]> /[a-c]+/ <[1]>?',
    'start: <[^1-200,210]> "a" | "aa" <[*]>',
    '%ignore " "\nstart: <[0]> <[1,101-103]>+ "b"',
    'start: TEXT <[0]> "x" | a TEXT\na[lazy]: TEXT "<a"\nTEXT: /[^b]*/',
  ])('Lark: %s', (source) => {
    const grammar = compileConstraint({ type: 'lark', value: source }, vocabulary);
    const bnf = bnfOfGrammar(larkGrammar(source, new WorkBudget(1e9)));
    expect(
      firstDifference(() => grammar.start(), bnf, { ...options, random: randomFrom(4) }).difference,
    ).toBe(null);
  });
});

describe('a reference to a token', () => {
  const [SYSTEM, THINK, A, SAME, AB, B, RAW] = [0, 1, 2, 3, 4, 5, 6];
  const table = tokenTable(['<|system|>', '<think>', 'a', 'a', 'ab', 'b', Uint8Array.of(0xff)], 1);
  const vocabulary = new GrammarVocabulary(table);
  const afterTokens = (type: 'gbnf' | 'lark', value: string, ...accepted: number[]): [number[], boolean] => {
    const constraint = compileConstraint({ type, value }, vocabulary).start();
    for (const token of accepted) constraint.accept(token);
    return [allowedTokens(constraint.mask()), constraint.accepting];
  };

  it('matches a special token by name, which its text does not', () => {
    expect(afterTokens('lark', 'start: <|system|> "a"')).toEqual([[SYSTEM], false]);
    expect(afterTokens('lark', 'start: "<|system|>"')).toEqual([[], false]);
    expect(afterTokens('gbnf', 'root ::= <|system|> "a"', SYSTEM)).toEqual([[A, SAME], false]);
  });

  it('matches a token in angle brackets that is not special', () => {
    expect(afterTokens('gbnf', 'root ::= <think> "a"', THINK)).toEqual([[A, SAME], false]);
  });

  it('matches one of two tokens with equal text', () => {
    expect(afterTokens('lark', 'start: <[3]> "b"')).toEqual([[SAME], false]);
  });

  it('follows both ways if a token matches as text and by id', () => {
    expect(afterTokens('lark', 'start: <[4]> "a" | "a" "b" "b"', AB)).toEqual([[A, SAME, B], false]);
    expect(afterTokens('lark', 'start: <[4]> "a" | "a" "b"', AB)).toEqual([[A, SAME], true]);
  });

  it('is not matched by a token of raw bytes', () => {
    expect(afterTokens('gbnf', 'root ::= <[2]>')).toEqual([[A], false]);
    expect(afterTokens('gbnf', 'root ::= !<[2]>')[0]).toEqual([SYSTEM, THINK, SAME, AB, B, RAW]);
  });

  it('completes a text at its end', () => {
    const constraint = compileConstraint(
      { type: 'lark', value: 'start: "a" <|system|>' },
      vocabulary,
    ).start();
    expect(constraint.completesWith!(SYSTEM)).toBe(false);
    constraint.accept(A);
    expect([SYSTEM, THINK, A].map((token) => constraint.completesWith!(token))).toEqual([true, false, false]);
    expect(constraint.accepting).toBe(false);
  });

  it('is refused if no token of the model has the name', () => {
    const wire = { type: 'lark', value: 'start: <|user|>' } as const;
    expect(() => compileConstraint(wire, vocabulary)).toThrow('The model has no token named <|user|>');
  });

  it('matches nothing if the model has fewer tokens', () => {
    expect(afterTokens('gbnf', 'root ::= <[7]> | "a"')).toEqual([[A, SAME], false]);
  });
});
