import { ALL_CODE_POINTS } from '../automaton/code-points.ts';
import { MAX_TOKEN_ID } from '../automaton/token-path.ts';
import {
  chars,
  choice,
  type Expression,
  type Grammar,
  GrammarBuilder,
  repeat,
  rule,
  sequence,
  text,
} from '../rules/expression.ts';
import { GrammarError, syntaxError } from '../rules/grammar-error.ts';
import { GbnfCursor } from './gbnf-cursor.ts';

/** Maximum nesting of groups. */
const MAX_NESTING = 200;

/**
 * Parses GBNF like llama.cpp: `name ::= alternatives`; the start rule is `root`; a later definition of a name
 * replaces an earlier one. Extensions: literals in single quotes, `{,m}`, `_` in names, alternatives that
 * begin on a new line, left recursion.
 */
export function parseGbnf(source: string): Grammar {
  return new GbnfParser(source).parse();
}

class GbnfParser {
  readonly #source: string;
  readonly #cursor: GbnfCursor;
  readonly #builder = new GrammarBuilder();
  readonly #rules = new Map<string, { index: number; offset: number; defined: boolean }>();

  constructor(source: string) {
    this.#source = source;
    this.#cursor = new GbnfCursor(source);
  }

  parse(): Grammar {
    const cursor = this.#cursor;
    cursor.skipSpace(true);
    while (!cursor.atEnd) this.#parseRule();
    for (const [name, { defined, offset }] of this.#rules) {
      if (!defined) throw syntaxError(this.#source, offset, `Rule "${name}" is used but not defined`);
    }
    const root = this.#rules.get('root');
    if (!root) throw new GrammarError('The grammar has no rule named "root"');
    return this.#builder.build(root.index);
  }

  #parseRule(): void {
    const cursor = this.#cursor;
    const offset = cursor.offset;
    const name = cursor.name();
    cursor.skipSpace(false);
    cursor.expect('::=');
    cursor.skipSpace(true);
    const entry = this.#entry(name, offset);
    entry.defined = true;
    this.#builder.define(entry.index, this.#parseAlternatives(0));
    if (!cursor.atEnd && !cursor.atNewline) throw cursor.error('Expected the end of the rule');
    cursor.skipSpace(true);
  }

  #entry(name: string, offset: number): { index: number; offset: number; defined: boolean } {
    let entry = this.#rules.get(name);
    if (!entry) {
      entry = { index: this.#builder.declare(), offset, defined: false };
      this.#rules.set(name, entry);
    }
    return entry;
  }

  #parseAlternatives(nesting: number): Expression {
    const cursor = this.#cursor;
    const items = [this.#parseSequence(nesting)];
    for (;;) {
      // Outside groups a line break ends the rule, unless the next line begins with `|`.
      if (nesting === 0 && cursor.nextLineBeginsWith('|')) cursor.skipSpace(true);
      if (!cursor.take('|')) return choice(items);
      cursor.skipSpace(true);
      items.push(this.#parseSequence(nesting));
    }
  }

  #parseSequence(nesting: number): Expression {
    const items: Expression[] = [];
    for (;;) {
      const item = this.#parseItem(nesting);
      if (item === null) return sequence(...items);
      this.#cursor.skipSpace(nesting > 0);
      items.push(this.#parseQuantifiers(item, nesting));
    }
  }

  #parseItem(nesting: number): Expression | null {
    const cursor = this.#cursor;
    const offset = cursor.offset;
    if (cursor.peek === '"' || cursor.peek === "'") return text(cursor.string());
    if (cursor.peek === '[') return chars(cursor.characterClass());
    if (cursor.take('.')) return chars(ALL_CODE_POINTS);
    if (cursor.take('(')) {
      if (nesting >= MAX_NESTING)
        throw cursor.error(`Groups are nested more than ${MAX_NESTING} levels deep`);
      cursor.skipSpace(true);
      const inner = this.#parseAlternatives(nesting + 1);
      cursor.expect(')');
      return inner;
    }
    if (cursor.atName) return rule(this.#entry(cursor.name(), offset).index);
    if (cursor.peek === '<' || cursor.peek === '!') return this.#parseToken();
    if ('*+?{'.includes(cursor.peek) && !cursor.atEnd)
      throw cursor.error('Nothing to repeat before the quantifier');
    return null;
  }

  /** Takes `<[10]>`, `!<[10]>` or `<name>`. */
  #parseToken(): Expression {
    const cursor = this.#cursor;
    const negated = cursor.take('!');
    const id = cursor.tokenId();
    if (id === null) {
      if (negated) throw cursor.error('A negated token needs its id, as in !<[10]>');
      return this.#builder.token(cursor.tokenName());
    }
    return { kind: 'tokens', ids: negated ? [0, id - 1, id + 1, MAX_TOKEN_ID] : [id, id] };
  }

  #parseQuantifiers(item: Expression, nesting: number): Expression {
    const cursor = this.#cursor;
    let result = item;
    for (let count = 0; ; count++) {
      if (count > MAX_NESTING) throw cursor.error(`More than ${MAX_NESTING} quantifiers in a row`);
      if (cursor.take('*')) result = repeat(result, 0, Number.POSITIVE_INFINITY);
      else if (cursor.take('+')) result = repeat(result, 1, Number.POSITIVE_INFINITY);
      else if (cursor.take('?')) result = repeat(result, 0, 1);
      else if (cursor.peek === '{') result = repeat(result, ...cursor.counts(nesting > 0));
      else return result;
      cursor.skipSpace(nesting > 0);
    }
  }
}
