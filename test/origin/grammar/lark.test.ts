import { describe, expect, it } from 'vitest';
import { WorkBudget } from '../../../origin/grammar/automaton/work-budget.ts';
import { compileProgram } from '../../../origin/grammar/compile.ts';
import { IMPORTABLE_TERMINALS } from '../../../origin/grammar/lark/importable-terminals.ts';
import { larkGrammar } from '../../../origin/grammar/lark/llguidance.ts';
import { GrammarVocabulary } from '../../../origin/grammar/runtime/grammar-vocabulary.ts';
import { acceptsText } from '../../support/grammar/acceptance.ts';
import { firstDifference } from '../../support/grammar/compare-masks.ts';
import { compileConstraint } from '../../support/grammar/compile-constraint.ts';
import { LARK_CASES, LARK_FAULTS } from '../../support/grammar/lark-cases.ts';
import { bnfOfGrammar } from '../../support/grammar/oracle/expression-to-bnf.ts';
import { smallVocabulary } from '../../support/grammar/vocabularies.ts';
import { randomFrom } from '../../support/random.ts';

const tokens = smallVocabulary();
const vocabulary = new GrammarVocabulary(tokens);

describe.each(LARK_CASES)('Lark: $name', ({ source, valid, invalid }) => {
  it('accepts matching texts and refuses others', () => {
    const grammar = compileConstraint({ type: 'lark', value: source }, vocabulary);
    for (const text of valid) expect(acceptsText(grammar, text, tokens), text).toBe(true);
    for (const text of invalid) expect(acceptsText(grammar, text, tokens), text).toBe(false);
  });

  it('has masks that equal the oracle in every bit', () => {
    const grammar = compileConstraint({ type: 'lark', value: source }, vocabulary);
    const bnf = bnfOfGrammar(larkGrammar(source, new WorkBudget(1e9)));
    const { difference } = firstDifference(() => grammar.start(), bnf, {
      tokens,
      random: randomFrom(2),
      walks: 2,
      steps: 8,
    });
    expect(difference).toBeNull();
  });
});

it.each(LARK_FAULTS)('refuses an invalid Lark grammar with its position: %s', (_name, source, message) => {
  expect(() => compileProgram({ type: 'lark', value: source })).toThrow(message);
});

it('ignores the temperature of a rule, and names it', () => {
  const value = 'start: a b\na[temperature=0.75, lazy]: /x+/\nb[temperature=1]: "y"';
  const grammar = compileConstraint({ type: 'lark', value }, vocabulary);
  expect(grammar.ignoredKeywords).toEqual(['temperature']);
  expect(acceptsText(grammar, 'xy', tokens)).toBe(true);
});

/** By terminal of Lark's common library: matching and other texts. */
const COMMON: Readonly<Record<string, readonly [valid: readonly string[], invalid: readonly string[]]>> = {
  DIGIT: [['0'], ['10', 'a']],
  HEXDIGIT: [
    ['9', 'f', 'A'],
    ['g', 'ff'],
  ],
  INT: [
    ['0', '007'],
    ['-1', ''],
  ],
  SIGNED_INT: [
    ['+1', '-20', '3'],
    ['+', '1.0'],
  ],
  DECIMAL: [
    ['1.', '.5', '1.5'],
    ['1', '.'],
  ],
  FLOAT: [
    ['1e5', '1.5', '.5e-3'],
    ['1', 'e5'],
  ],
  SIGNED_FLOAT: [
    ['-1e5', '+.5', '2.'],
    ['-1', '--1.5'],
  ],
  NUMBER: [
    ['1', '1.5', '2e8', '.5'],
    ['-1', '1e'],
  ],
  SIGNED_NUMBER: [
    ['-1', '+2.5e-3', '7'],
    ['+', '1e'],
  ],
  ESCAPED_STRING: [
    ['""', '"a\\"b"', '"\\\\"'],
    ['"a', 'a', '"\\"', '"a\nb"'],
  ],
  LCASE_LETTER: [['a'], ['A', 'ab']],
  UCASE_LETTER: [['Z'], ['z']],
  LETTER: [
    ['a', 'Z'],
    ['1', 'ab'],
  ],
  WORD: [
    ['abc', 'Z'],
    ['a1', ''],
  ],
  CNAME: [
    ['_a1', 'Name'],
    ['1a', ''],
  ],
  WS_INLINE: [
    [' ', '\t '],
    ['\n', ''],
  ],
  WS: [[' \t\n\r\f'], ['', 'a']],
  CR: [['\r'], ['\n']],
  LF: [['\n'], ['\r']],
  NEWLINE: [
    ['\n', '\r\n\n'],
    ['\r', ''],
  ],
  SH_COMMENT: [
    ['#', '# a'],
    ['a', '#\n'],
  ],
  CPP_COMMENT: [
    ['//', '// a'],
    ['/', '//\n'],
  ],
  C_COMMENT: [
    ['/**/', '/* a\n* */', '/***/'],
    ['/*/', '/* */ */'],
  ],
  SQL_COMMENT: [
    ['--', '-- a'],
    ['-', '--\n'],
  ],
};

describe('%import common', () => {
  it('supports exactly these terminals', () => {
    expect(Object.keys(IMPORTABLE_TERMINALS).sort()).toEqual(Object.keys(COMMON).sort());
  });

  it.each(Object.entries(COMMON))('%s', (name, [valid, invalid]) => {
    const source = `%import common.${name}\nstart: ${name}`;
    const grammar = compileConstraint({ type: 'lark', value: source }, vocabulary);
    for (const text of valid) expect(acceptsText(grammar, text, tokens), text).toBe(true);
    for (const text of invalid) expect(acceptsText(grammar, text, tokens), text).toBe(false);
  });
});

describe("llguidance's JSON form", () => {
  const compile = (value: unknown): ReturnType<typeof compileConstraint> =>
    compileConstraint({ type: 'lark', value: JSON.stringify(value) }, vocabulary);

  it('takes a Lark grammar or a JSON Schema', () => {
    expect(acceptsText(compile({ grammars: [{ lark_grammar: 'start: "a"' }] }), 'a', tokens)).toBe(true);
    const nulls = { name: null, lark_grammar: 'start: "a"', json_schema: null };
    expect(acceptsText(compile({ grammars: [nulls] }), 'a', tokens)).toBe(true);
    expect(acceptsText(compile({ grammars: [{ json_schema: { type: 'boolean' } }] }), 'true', tokens)).toBe(
      true,
    );
  });

  it('lets a Lark grammar refer to the other grammars by name', () => {
    const grammar = compile({
      grammars: [{ lark_grammar: 'start: "x=" @value' }, { name: 'value', json_schema: { type: 'integer' } }],
    });
    expect(acceptsText(grammar, 'x=12', tokens)).toBe(true);
    expect(acceptsText(grammar, 'x=a', tokens)).toBe(false);
  });

  it.each([
    [{ grammars: [] }, /non-empty array/],
    [{ grammars: [{}] }, /grammars\[0\] must have either/],
    [{ grammars: [{ lark_grammar: 'start: @b' }] }, /"@b" is used but not defined/],
    [
      { grammars: [{ lark_grammar: 'start: "a"', temperature: 1 }] },
      /grammars\[0\]\.temperature is not supported/,
    ],
  ])('refuses %j', (value, message) => {
    expect(() => compile(value)).toThrow(message);
  });
});
