import { describe, expect, it } from 'vitest';
import { compileProgram } from '../../../origin/grammar/compile.ts';
import type { Constraint } from '../../../origin/grammar/runtime/constraint.ts';
import { GrammarRuntime } from '../../../origin/grammar/runtime/grammar-runtime.ts';
import { GrammarVocabulary } from '../../../origin/grammar/runtime/grammar-vocabulary.ts';
import { bytesOf } from '../../../origin/tokenizer/token-bytes.ts';
import { firstDifference } from '../../support/grammar/compare-masks.ts';
import { compileConstraint } from '../../support/grammar/compile-constraint.ts';
import { finished } from '../../support/grammar/finished.ts';
import { bnfOfGbnf } from '../../support/grammar/oracle/gbnf-to-bnf.ts';
import { allowedTokens, randomText } from '../../support/grammar/random-walk.ts';
import { smallVocabulary, tokenTable } from '../../support/grammar/vocabularies.ts';
import { randomFrom } from '../../support/random.ts';

const TEXTS = ['<s>', '</s>', 'a', 'b', 'ab', 'abc', 'c', '', 'b', 'x'.repeat(40), 'x'];
const tokens = tokenTable(TEXTS, 2);
const vocabulary = new GrammarVocabulary(tokens);

function start(gbnf: string): Constraint {
  return compileConstraint({ type: 'gbnf', value: gbnf }, vocabulary).start();
}

function allowed(constraint: Constraint): string[] {
  return allowedTokens(constraint.mask()).map((id) => `${id}:${TEXTS[id]}`);
}

describe('a constraint', () => {
  it('never allows special tokens or tokens without text', () => {
    expect(allowed(start('root ::= .*')).some((token) => /^[017]:/.test(token))).toBe(false);
    expect(allowed(start('root ::= "<s>" | "a"'))).toEqual(['2:a']);
  });

  it('allows every token with the same bytes', () => {
    expect(allowed(start('root ::= "b"'))).toEqual(['3:b', '8:b']);
  });

  it('accepts the end exactly where the text is a complete match', () => {
    const constraint = start('root ::= "a" ("b" "c")?');
    const ends = [constraint.accepting];
    for (const text of ['a', 'b', 'c']) {
      constraint.accept(TEXTS.indexOf(text));
      ends.push(constraint.accepting);
    }
    expect(ends).toEqual([false, true, false, true]);
    expect(allowed(constraint)).toEqual([]);
  });

  it('accepts the end at the start if the empty text matches', () => {
    expect(start('root ::= "a"?').accepting).toBe(true);
    expect(start('root ::= "a"').accepting).toBe(false);
  });

  it('throws on a token that its mask does not allow, without advancing', () => {
    const constraint = start('root ::= "ab"');
    expect(() => constraint.accept(6)).toThrow(/does not match/);
    expect(() => constraint.accept(0)).toThrow(/does not match/);
    expect(allowed(constraint)).toEqual(['2:a', '4:ab']);
  });

  it('is independent of other sequences of the same grammar', () => {
    const grammar = compileConstraint({ type: 'gbnf', value: 'root ::= "a" "b" "c"' }, vocabulary);
    const [one, two] = [grammar.start(), grammar.start()];
    one.accept(2);
    expect(allowed(two)).toEqual(['2:a', '4:ab', '5:abc']);
    two.accept(4);
    expect(allowed(one)).toEqual(['3:b', '8:b']);
    expect(allowed(two)).toEqual(['6:c']);
  });

  it('counts long tokens in repetitions exactly', () => {
    const constraint = start('root ::= "x"{0,100}');
    for (const left of [100, 60, 20]) {
      expect(allowed(constraint).includes(`9:${'x'.repeat(40)}`)).toBe(left >= 40);
      if (left >= 40) constraint.accept(9);
    }
    for (let i = 0; i < 20; i++) constraint.accept(10);
    expect(allowed(constraint)).toEqual([]);
  });
});

describe('long tokens that cross the end of a rule', () => {
  // The states of a counted repetition share the masks of short tokens; long tokens are walked per state.
  const long = `${'x'.repeat(17)}","`;
  const table = tokenTable([
    '[',
    ']',
    '"',
    ',',
    'x',
    'xx',
    '",',
    long,
    `${long}y`,
    `${'x'.repeat(30)}"]`,
    'x"]',
    ...[3, 5, 7, 9, 12, 20, 41].flatMap((n) => ['x'.repeat(n), `${'x'.repeat(n)}"`, `${'x'.repeat(n)}","x`]),
  ]);
  const source = 'root ::= "[" s ("," s)* "]"\ns ::= "\\"" [a-z]{0,60} "\\""';

  it('are allowed exactly if the following rule allows their rest', () => {
    const grammar = compileConstraint({ type: 'gbnf', value: source }, new GrammarVocabulary(table));
    const options = { tokens: table, random: randomFrom(3), walks: 12, steps: 40 };
    expect(firstDifference(() => grammar.start(), bnfOfGbnf(source), options).difference).toBeNull();
  });
});

describe('a long token near the end of a counted repetition', () => {
  it('is refused once it no longer fits, although short tokens are still allowed', () => {
    const texts = ['["', 'xx', `${'x'.repeat(30)}"]`];
    const source = 'root ::= "[" s ("," s)* "]"\ns ::= "\\"" [a-z]{0,60} "\\""';
    const grammar = compileConstraint(
      { type: 'gbnf', value: source },
      new GrammarVocabulary(tokenTable(texts)),
    );
    const constraint = grammar.start();
    constraint.accept(0);
    for (let length = 0; length <= 40; length += 2) {
      expect(allowedTokens(constraint.mask())).toEqual(length <= 30 ? [1, 2] : [1]);
      constraint.accept(1);
    }
  });
});

describe('bounded memory', () => {
  const wide = smallVocabulary();
  const program = compileProgram({ type: 'json_object' });

  it('generates the same texts whether or not the state table is replaced', () => {
    const texts = (states: number): (string | null)[] => {
      const grammar = new GrammarRuntime(program, new GrammarVocabulary(wide), { states });
      const random = randomFrom(21);
      return Array.from({ length: 12 }, () =>
        randomText(grammar.start(), { tokens: wide, random, patience: 40, limit: 400 }),
      );
    };
    expect(texts(10)).toEqual(texts(1_000_000));
  });

  it('replaces a state table that exceeds its memory limit', () => {
    const source = 'root ::= "a" root "b" | root root | "a" | "b"';
    const ambiguous = compileProgram({ type: 'gbnf', value: source });
    const grammar = new GrammarRuntime(ambiguous, new GrammarVocabulary(wide), { bytes: 2 ** 20 });
    const random = randomFrom(1);
    for (let text = 0; text < 4; text++) {
      const constraint = grammar.start();
      for (let step = 0; step < 90; step++) {
        constraint.mask();
        constraint.accept(4 + (random() < 0.5 ? 'a' : 'b').charCodeAt(0));
        expect(grammar.bytes).toBeLessThan(2 * 2 ** 20);
      }
    }
  });

  it('gives the same masks with and without the mask cache', () => {
    const forgetful = new GrammarVocabulary(wide, 0);
    const walk = (shared: GrammarVocabulary): number[][] => {
      const constraint = new GrammarRuntime(program, shared).start();
      const random = randomFrom(5);
      const masks: number[][] = [];
      for (let step = 0; step < 60; step++) {
        const ids = allowedTokens(constraint.mask());
        masks.push(ids);
        if (ids.length === 0) break;
        constraint.accept(ids[Math.floor(random() * ids.length)]!);
      }
      return masks;
    };
    expect(walk(forgetful)).toEqual(walk(new GrammarVocabulary(wide)));
    expect(forgetful.masks.size).toBeLessThanOrEqual(16);
  });

  it('continues sequences that started before the state table was replaced', () => {
    const grammar = new GrammarRuntime(program, new GrammarVocabulary(wide), { states: 40 });
    const brace = 4 + '{'.charCodeAt(0);
    const early = grammar.start();
    early.accept(brace);
    for (let i = 0; i < 5; i++)
      randomText(grammar.start(), { tokens: wide, random: randomFrom(i), patience: 30, limit: 300 });
    const late = grammar.start();
    late.accept(brace);
    expect(allowedTokens(early.mask())).toEqual(allowedTokens(late.mask()));
  });
});

describe('work per step', () => {
  it('is limited: a grammar of which one byte takes too much fails with invalid_grammar', () => {
    const wide = new GrammarVocabulary(smallVocabulary());
    // 200 nullable rules that call each other: every byte has very many derivations.
    const rules = Array.from(
      { length: 200 },
      (_, i) => `r${i} ::= (r${(3 * i + 1) % 200} | r${(5 * i + 2) % 200} | "a")*`,
    );
    const constraint = compileConstraint(
      { type: 'gbnf', value: `root ::= r0\n${rules.join('\n')}` },
      wide,
    ).start();
    const run = (): void => {
      for (let i = 0; i < 2000; i++) constraint.accept(allowedTokens(finished(() => constraint.mask()))[0]!);
    };
    expect(run).toThrow(expect.objectContaining({ code: 'invalid_grammar', status: 400 }));
  });

  it('produces valid UTF-8 even if tokens end within a character', () => {
    const wide = smallVocabulary();
    const grammar = compileConstraint(
      { type: 'gbnf', value: 'root ::= [^a]{1,12}' },
      new GrammarVocabulary(wide),
    );
    const random = randomFrom(8);
    const partial = allowedTokens(grammar.start().mask()).filter((id) => {
      const last = bytesOf(wide, id).at(-1)!;
      return last >= 0xc0;
    });
    expect(partial.length).toBeGreaterThan(0);
    // randomText throws on invalid UTF-8.
    for (let i = 0; i < 50; i++)
      randomText(grammar.start(), { tokens: wide, random, patience: 6, limit: 60 });
  });
});
