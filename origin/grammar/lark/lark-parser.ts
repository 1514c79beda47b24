import { type GrammarError, syntaxError } from '../grammar-error.ts';
import { IMPORTABLE_TERMINALS } from './importable-terminals.ts';
import { LarkCursor } from './lark-cursor.ts';

/** A parsed Lark expression with unresolved names. */
export type LarkNode =
  | { readonly kind: 'name'; readonly name: string; readonly offset: number }
  | { readonly kind: 'string'; readonly value: string; readonly ignoreCase: boolean }
  | { readonly kind: 'regex'; readonly source: string; readonly flags: string; readonly offset: number }
  | { readonly kind: 'range'; readonly from: number; readonly to: number }
  | { readonly kind: 'sequence' | 'choice'; readonly items: readonly LarkNode[] }
  | { readonly kind: 'repeat'; readonly item: LarkNode; readonly min: number; readonly max: number }
  /** `@name`: a reference to another grammar. */
  | { readonly kind: 'grammar'; readonly name: string; readonly offset: number }
  | { readonly kind: 'json'; readonly schema: unknown };

export interface LarkGrammar {
  /** Rules (lower case) and terminals (upper case) by name. */
  readonly definitions: ReadonlyMap<string, LarkNode>;
  readonly ignored: readonly LarkNode[];
}

const MAX_NESTING = 200;

/**
 * Parses Lark: rules, terminals, aliases, `%import common.X`, `%ignore`. Priorities are ignored, because they choose
 * between parses of the same text. Extensions as in llguidance: counts in braces, `-` in names. Rejected: templates,
 * `%declare`, `%extend`, `%override`.
 */
export function parseLark(source: string): LarkGrammar {
  return new LarkParser(source).parse();
}

class LarkParser {
  readonly #source: string;
  readonly #cursor: LarkCursor;
  readonly #definitions = new Map<string, LarkNode>();
  readonly #ignored: LarkNode[] = [];

  constructor(source: string) {
    this.#source = source;
    this.#cursor = new LarkCursor(source);
  }

  parse(): LarkGrammar {
    const cursor = this.#cursor;
    while (!cursor.atEnd) {
      if (cursor.takeKind('newline')) continue;
      if (cursor.token?.kind === 'directive') this.#directive();
      else this.#definition();
      if (!cursor.takeKind('newline')) throw cursor.error('Expected the end of the line');
    }
    return { definitions: this.#definitions, ignored: this.#ignored };
  }

  #definition(): void {
    const cursor = this.#cursor;
    while (cursor.takeSymbol('!') || cursor.takeSymbol('?'));
    const name = cursor.takeKind('rule') ?? cursor.takeKind('terminal');
    if (!name) throw cursor.error('Expected a rule or a terminal');
    if (this.#definitions.has(name.text)) throw this.#error(name.offset, `"${name.text}" is defined twice`);
    if (cursor.takeSymbol('.')) cursor.number();
    if (cursor.takeSymbol('{')) throw this.#error(name.offset, 'Templates are not supported');
    if (cursor.takeSymbol('['))
      throw this.#error(name.offset, 'Rule attributes in brackets are not supported');
    cursor.expect(':');
    this.#definitions.set(name.text, this.#alternatives(0));
  }

  #directive(): void {
    const cursor = this.#cursor;
    if (cursor.token?.text === '%llguidance') {
      // Only `skip_repetition` changes which texts match; the other options tune llguidance itself.
      const { offset } = cursor.token;
      const { skip_repetition: repetition } = cursor.jsonAfterDirective() as { skip_repetition?: unknown };
      if (repetition === 'once') throw this.#error(offset, '"skip_repetition" is not supported');
      return;
    }
    const token = cursor.takeKind('directive')!;
    if (token.text === '%ignore') this.#ignored.push(this.#alternatives(0));
    else if (token.text === '%import') this.#import();
    else throw this.#error(token.offset, `${token.text} is not supported`);
  }

  /** Takes `common.A`, `common.A -> B` or `common (A, B)`. */
  #import(): void {
    const cursor = this.#cursor;
    const library = cursor.takeKind('rule');
    if (library?.text !== 'common') throw cursor.error('Only the library "common" can be imported');
    if (cursor.takeSymbol('(')) {
      do this.#importTerminal();
      while (cursor.takeSymbol(','));
      cursor.expect(')');
      return;
    }
    cursor.expect('.');
    this.#importTerminal();
  }

  #importTerminal(): void {
    const cursor = this.#cursor;
    const token = cursor.takeKind('terminal');
    const source =
      token && Object.hasOwn(IMPORTABLE_TERMINALS, token.text) ? IMPORTABLE_TERMINALS[token.text] : undefined;
    if (!token || source === undefined) throw cursor.error('No such terminal in the library "common"');
    const alias = cursor.takeSymbol('->') ? cursor.takeKind('terminal') : token;
    if (!alias) throw cursor.error('Expected the name of a terminal');
    this.#definitions.set(alias.text, { kind: 'regex', source, flags: '', offset: token.offset });
  }

  #alternatives(nesting: number): LarkNode {
    const items = [this.#sequence(nesting)];
    while (this.#cursor.takeSymbol('|')) items.push(this.#sequence(nesting));
    return items.length === 1 ? items[0]! : { kind: 'choice', items };
  }

  #sequence(nesting: number): LarkNode {
    const cursor = this.#cursor;
    const items: LarkNode[] = [];
    for (;;) {
      if (nesting > 0) while (cursor.takeKind('newline'));
      const item = this.#item(nesting);
      if (item === null) break;
      items.push(this.#quantified(item));
    }
    if (cursor.takeSymbol('->') && !cursor.takeKind('rule')) throw cursor.error('Expected a name');
    return items.length === 1 ? items[0]! : { kind: 'sequence', items };
  }

  #item(nesting: number): LarkNode | null {
    const cursor = this.#cursor;
    const name = cursor.takeKind('rule') ?? cursor.takeKind('terminal');
    if (name) {
      if (cursor.isSymbol('{') && !cursor.atCounts) throw cursor.error('Templates are not supported');
      return { kind: 'name', name: name.text, offset: name.offset };
    }
    const reference = cursor.takeKind('reference');
    if (reference) return { kind: 'grammar', name: reference.text.slice(1), offset: reference.offset };
    if (cursor.token?.kind === 'string') return this.#stringOrRange();
    const regex = cursor.takeKind('regex');
    if (regex) {
      const end = regex.text.lastIndexOf('/');
      const source = regex.text.slice(1, end);
      return { kind: 'regex', source, flags: regex.text.slice(end + 1), offset: regex.offset + 1 };
    }
    if (cursor.token?.text === '%json') return { kind: 'json', schema: cursor.jsonAfterDirective() };
    if (cursor.isSymbol('(') || cursor.isSymbol('[')) return this.#group(nesting);
    if (cursor.isSymbol('<')) throw cursor.error('Special tokens cannot be generated by a grammar');
    return null;
  }

  #group(nesting: number): LarkNode {
    const cursor = this.#cursor;
    if (nesting >= MAX_NESTING) throw cursor.error(`Groups are nested more than ${MAX_NESTING} levels deep`);
    const isOptional = cursor.takeSymbol('[');
    if (!isOptional) cursor.expect('(');
    const inner = this.#alternatives(nesting + 1);
    cursor.expect(isOptional ? ']' : ')');
    return isOptional ? { kind: 'repeat', item: inner, min: 0, max: 1 } : inner;
  }

  #stringOrRange(): LarkNode {
    const cursor = this.#cursor;
    const first = cursor.string();
    if (!cursor.takeSymbol('..')) return { kind: 'string', ...first };
    const second = cursor.string();
    const [from, ...restFrom] = Array.from(first.value, (char) => char.codePointAt(0)!);
    const [to, ...restTo] = Array.from(second.value, (char) => char.codePointAt(0)!);
    const isRange =
      from !== undefined && to !== undefined && from <= to && restFrom.length + restTo.length === 0;
    if (!isRange) throw cursor.error('A range needs two characters in order');
    return { kind: 'range', from, to };
  }

  #quantified(item: LarkNode): LarkNode {
    const cursor = this.#cursor;
    if (cursor.takeSymbol('*')) return { kind: 'repeat', item, min: 0, max: Number.POSITIVE_INFINITY };
    if (cursor.takeSymbol('+')) return { kind: 'repeat', item, min: 1, max: Number.POSITIVE_INFINITY };
    if (cursor.takeSymbol('?')) return { kind: 'repeat', item, min: 0, max: 1 };
    const counts = cursor.takeSymbol('~')
      ? this.#tildeCounts()
      : cursor.atCounts
        ? this.#bracedCounts()
        : null;
    if (counts === null) return item;
    const [min, max] = counts;
    if (max < min) throw cursor.error('The repetition counts are reversed');
    return { kind: 'repeat', item, min, max };
  }

  /** Takes `n` or `n..m`. */
  #tildeCounts(): [number, number] {
    const min = this.#cursor.number();
    return [min, this.#cursor.takeSymbol('..') ? this.#cursor.number() : min];
  }

  /** Takes `{n}`, `{n,}`, `{,m}` or `{n,m}`. */
  #bracedCounts(): [number, number] {
    const cursor = this.#cursor;
    cursor.expect('{');
    const min = cursor.isSymbol(',') ? 0 : cursor.number();
    let max = min;
    if (cursor.takeSymbol(',')) max = cursor.isSymbol('}') ? Number.POSITIVE_INFINITY : cursor.number();
    cursor.expect('}');
    return [min, max];
  }

  #error(offset: number, message: string): GrammarError {
    return syntaxError(this.#source, offset, message);
  }
}
