import { type GrammarError, syntaxError } from '../rules/grammar-error.ts';
import { IMPORTABLE_TERMINALS } from './importable-terminals.ts';
import { LarkCursor } from './lark-cursor.ts';
import {
  isTerminal,
  type LarkDefinition,
  type LarkGrammar,
  type LarkNode,
  type LazyEnd,
} from './lark-grammar.ts';
import { substringChunks } from './substring.ts';
import { tokenIds } from './token-ids.ts';

const MAX_NESTING = 200;
const NO_PARAMETERS = 'Rules with a parameter are not supported';
const OPTIONS = ['no_forcing', 'allow_initial_skip', 'allow_invalid_utf8', 'ignore_once'];

/**
 * Parses Lark: rules, terminals, aliases, `%import common.X`, `%ignore`. Priorities are ignored, because they
 * choose between parses of the same text. Extensions as in llguidance, see its docs/syntax.md. Rejected:
 * templates, rules with a parameter, `%declare`, `%extend`, `%override`.
 */
export function parseLark(source: string): LarkGrammar {
  return new LarkParser(source).parse();
}

class LarkParser {
  readonly #source: string;
  readonly #cursor: LarkCursor;
  readonly #definitions = new Map<string, LarkDefinition>();
  readonly #ignored: LarkNode[] = [];
  readonly #ignoredAttributes = new Set<string>();
  #ignoresOnce = false;

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
    const parsed = { definitions: this.#definitions, ignored: this.#ignored };
    return { ...parsed, ignoresOnce: this.#ignoresOnce, ignoredAttributes: this.#ignoredAttributes };
  }

  #definition(): void {
    const cursor = this.#cursor;
    while (cursor.takeSymbol('!') || cursor.takeSymbol('?'));
    const name = cursor.takeKind('rule') ?? cursor.takeKind('terminal');
    if (!name) throw cursor.error('Expected a rule or a terminal');
    if (this.#definitions.has(name.text)) throw this.#error(name.offset, `"${name.text}" is defined twice`);
    if (cursor.takeSymbol('.')) {
      cursor.takeSymbol('-');
      cursor.number();
    }
    if (cursor.takeSymbol('{')) throw this.#error(name.offset, 'Templates are not supported');
    if (cursor.takeSymbol('::')) throw this.#error(name.offset, NO_PARAMETERS);
    const lazy = cursor.takeSymbol('[') ? this.#attributes(name) : null;
    cursor.expect(':');
    const { text, offset } = name;
    this.#definitions.set(text, { name: text, offset, body: this.#alternatives(0), lazy });
  }

  /** Takes the attributes of a rule up to `]`. Captures are not reported, so they have no effect. */
  #attributes(rule: { readonly text: string; readonly offset: number }): LazyEnd | null {
    const cursor = this.#cursor;
    let lazy: LazyEnd | null = null;
    if (isTerminal(rule.text)) throw this.#error(rule.offset, 'Terminals have no attributes');
    do {
      const name = cursor.takeKind('rule');
      if (!name) throw cursor.error('Expected an attribute');
      if (name.text === 'temperature') {
        cursor.decimal();
        this.#ignoredAttributes.add(name.text);
        continue;
      }
      const value = cursor.takeSymbol('=') ? this.#item(0) : null;
      const isSupported = ['lazy', 'stop', 'suffix', 'capture', 'stop_capture'].includes(name.text);
      if (!isSupported) throw this.#error(name.offset, `The attribute "${name.text}" is not supported`);
      if (name.text.endsWith('capture')) continue;
      if ((name.text === 'lazy') !== (value === null))
        throw this.#error(
          name.offset,
          `Expected ${value === null ? 'a value' : 'no value'} for "${name.text}"`,
        );
      // An empty stop stands for the end of the text.
      if (name.text === 'stop' && value?.kind === 'string' && value.value === '') continue;
      if (lazy?.end) throw this.#error(name.offset, 'A rule can have one "stop" or "suffix"');
      lazy = { end: value, isStop: name.text === 'stop' };
    } while (cursor.takeSymbol(','));
    cursor.expect(']');
    return lazy;
  }

  /**
   * Takes `%llguidance {…}`. Most options tune llguidance itself; only `ignore_once` changes which texts
   * match.
   */
  #options(): void {
    const cursor = this.#cursor;
    const { offset } = cursor.token!;
    for (const [name, value] of Object.entries(cursor.jsonAfterDirective())) {
      if (!OPTIONS.includes(name)) throw this.#error(offset, `The option "${name}" is not supported`);
      if (typeof value !== 'boolean') throw this.#error(offset, `The option "${name}" must be true or false`);
      if (name === 'allow_invalid_utf8' && value)
        throw this.#error(offset, 'The option "allow_invalid_utf8" is not supported');
      if (name === 'ignore_once') this.#ignoresOnce = value;
    }
  }

  #directive(): void {
    const cursor = this.#cursor;
    if (cursor.token?.text === '%llguidance') {
      this.#options();
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
    const { text: name, offset } = alias;
    const body: LarkNode = { kind: 'regex', source, flags: '', offset };
    this.#definitions.set(name, { name, offset, body, lazy: null });
  }

  #alternatives(nesting: number): LarkNode {
    const items = [this.#conjunction(nesting)];
    while (this.#cursor.takeSymbol('|')) items.push(this.#conjunction(nesting));
    return items.length === 1 ? items[0]! : { kind: 'choice', items };
  }

  #conjunction(nesting: number): LarkNode {
    const offset = this.#cursor.token?.offset ?? 0;
    const items = [this.#sequence(nesting)];
    while (this.#cursor.takeSymbol('&')) items.push(this.#sequence(nesting));
    return items.length === 1 ? items[0]! : { kind: 'and', items, offset };
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
    if (nesting > 0) while (cursor.takeKind('newline'));
    const node: LarkNode = items.length === 1 ? items[0]! : { kind: 'sequence', items };
    if (cursor.token?.text === '%if') throw cursor.error(NO_PARAMETERS);
    if (cursor.takeSymbol('->') && !cursor.takeKind('rule')) throw cursor.error('Expected a name');
    return node;
  }

  #item(nesting: number): LarkNode | null {
    const cursor = this.#cursor;
    const name = cursor.takeKind('rule') ?? cursor.takeKind('terminal');
    if (name) {
      if (cursor.isSymbol('{') && !cursor.atCounts) throw cursor.error('Templates are not supported');
      if (cursor.takeSymbol('::')) throw this.#error(name.offset, NO_PARAMETERS);
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
    const offset = cursor.token?.offset ?? 0;
    const special = cursor.takeKind('special');
    if (special) return { kind: 'token', token: this.#token(special.text, offset), offset };
    if (cursor.token?.kind === 'directive') return this.#embedded(cursor.token.text, offset);
    if (cursor.isSymbol('(') || cursor.isSymbol('[')) return this.#group(nesting);
    if (!cursor.takeSymbol('~')) return null;
    if (nesting >= MAX_NESTING) throw cursor.error(`Groups are nested more than ${MAX_NESTING} levels deep`);
    const item = this.#item(nesting + 1);
    if (item === null) throw cursor.error('Expected an item after "~"');
    return { kind: 'not', item, offset };
  }

  #embedded(directive: string, offset: number): LarkNode | null {
    const cursor = this.#cursor;
    if (directive === '%json') return { kind: 'json', schema: cursor.jsonAfterDirective(), offset };
    if (directive === '%lark') return { kind: 'lark', source: cursor.grammarAfterDirective(), offset };
    if (directive !== '%regex') return null;
    const chunks = substringChunks(cursor.jsonAfterDirective());
    if (typeof chunks === 'string') throw this.#error(offset, chunks);
    return { kind: 'substring', chunks };
  }

  /** Reads `<name>`, or ids such as `<[1,3-5]>`. */
  #token(text: string, offset: number): string | readonly number[] {
    if (!text.startsWith('<[')) return text;
    const ids = tokenIds(text);
    if (ids === null)
      throw this.#error(offset, 'Expected token ids and ranges of them in order, as in <[1,3-5]>');
    return ids;
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
    const counts =
      cursor.isSymbol('~') && cursor.precedesNumber
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
    this.#cursor.expect('~');
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
