import { ALL_CODE_POINTS, type CodePoints } from '../automaton/code-points.ts';
import { type GrammarError, syntaxError } from '../grammar-error.ts';
import type { WorkBudget } from '../work-budget.ts';
import { ANY_BUT_LINE_END, bothCases } from './character-sets.ts';
import { classEscape, classMembers, RegexCursor } from './regex-cursor.ts';

/** A parsed regular expression. Groups do not capture, so they have no node. */
export type RegexNode =
  | { readonly kind: 'chars'; readonly set: CodePoints }
  | { readonly kind: 'sequence'; readonly items: readonly RegexNode[] }
  | { readonly kind: 'choice'; readonly items: readonly RegexNode[] }
  /** `max` may be Infinity. */
  | { readonly kind: 'repeat'; readonly item: RegexNode; readonly min: number; readonly max: number }
  /** `^` or `$`: the start or the end of the whole text. */
  | { readonly kind: 'anchor'; readonly at: 'start' | 'end' };

const MAX_NESTING = 200;

export interface RegexFlags {
  /** Whether `.` also matches line ends. */
  readonly dotAll?: boolean;
  /** Whether letters match in any case. */
  readonly ignoreCase?: boolean;
}

/**
 * Parses ECMAScript syntax with the flag u: one character is one code point. Punctuation may be escaped. Rejected:
 * look-around, back-references, word boundaries, inline flags.
 */
export function parseRegex(source: string, budget: WorkBudget, flags: RegexFlags = {}): RegexNode {
  const parser = new RegexParser(source, budget, flags);
  return parser.parse();
}

class RegexParser {
  readonly #cursor: RegexCursor;
  readonly #source: string;
  readonly #budget: WorkBudget;
  readonly #flags: RegexFlags;

  constructor(source: string, budget: WorkBudget, flags: RegexFlags) {
    this.#source = source;
    this.#cursor = new RegexCursor(source);
    this.#budget = budget;
    this.#flags = flags;
  }

  parse(): RegexNode {
    const node = this.#alternatives(0);
    if (!this.#cursor.atEnd) throw this.#cursor.error('")" without "("');
    return node;
  }

  #alternatives(nesting: number): RegexNode {
    const items = [this.#sequence(nesting)];
    while (this.#cursor.take('|')) items.push(this.#sequence(nesting));
    return items.length === 1 ? items[0]! : { kind: 'choice', items };
  }

  #sequence(nesting: number): RegexNode {
    const items: RegexNode[] = [];
    while (!this.#cursor.atEnd && this.#cursor.peek !== '|' && this.#cursor.peek !== ')') {
      this.#budget.spend(20);
      items.push(this.#quantified(this.#atom(nesting)));
    }
    return items.length === 1 ? items[0]! : { kind: 'sequence', items };
  }

  #atom(nesting: number): RegexNode {
    const cursor = this.#cursor;
    if (cursor.take('^')) return { kind: 'anchor', at: 'start' };
    if (cursor.take('$')) return { kind: 'anchor', at: 'end' };
    if (cursor.take('.'))
      return { kind: 'chars', set: this.#flags.dotAll ? ALL_CODE_POINTS : ANY_BUT_LINE_END };
    if (cursor.peek === '[')
      return { kind: 'chars', set: classMembers(cursor, this.#budget, this.#flags.ignoreCase) };
    if (cursor.peek === '(') return this.#group(nesting);
    if (cursor.peek === '\\') return this.#escape();
    if ('*+?'.includes(cursor.peek)) throw cursor.error('Nothing to repeat before the quantifier');
    if (/^\{\d*,?\d*\}/.test(cursor.rest(24)))
      throw cursor.error('A count needs an item before it and a minimum, as in a{0,3}');
    const char = cursor.codePoint();
    return this.#chars([char, char]);
  }

  #group(nesting: number): RegexNode {
    const cursor = this.#cursor;
    const offset = cursor.offset;
    if (nesting >= MAX_NESTING) throw cursor.error(`Groups are nested more than ${MAX_NESTING} levels deep`);
    cursor.take('(');
    if (cursor.take('?')) this.#groupKind(offset);
    const inner = this.#alternatives(nesting + 1);
    if (!cursor.take(')')) throw syntaxError(this.#source, offset, 'The group is not closed');
    // Keeps a group around an anchor, because a group can be repeated and an anchor cannot.
    return inner.kind === 'anchor' ? { kind: 'sequence', items: [inner] } : inner;
  }

  #groupKind(offset: number): void {
    const cursor = this.#cursor;
    if (cursor.take(':') || cursor.takeGroupName()) return;
    if (/^<?[=!]/.test(cursor.rest(2))) throw this.#error(offset, 'Look-around is not supported');
    throw this.#error(offset, 'This kind of group is not supported; use (…), (?:…) or (?<name>…)');
  }

  #escape(): RegexNode {
    const cursor = this.#cursor;
    const offset = cursor.offset;
    const next = cursor.rest(2).charAt(1);
    if (/[1-9]/.test(next) || next === 'k') throw this.#error(offset, 'Back-references are not supported');
    if (next === 'b' || next === 'B') throw this.#error(offset, 'Word boundaries are not supported');
    const set = classEscape(cursor, this.#budget);
    return this.#chars(set);
  }

  #chars(set: readonly number[]): RegexNode {
    return { kind: 'chars', set: this.#flags.ignoreCase ? bothCases(set, this.#budget) : set };
  }

  #quantified(item: RegexNode): RegexNode {
    const cursor = this.#cursor;
    const counts = cursor.quantifier();
    if (counts === null) return item;
    // A lazy quantifier matches the same texts.
    cursor.take('?');
    if (item.kind === 'anchor') throw cursor.error('An anchor cannot be repeated');
    if (counts[1] < counts[0]) throw cursor.error('The repetition counts are reversed');
    return { kind: 'repeat', item, min: counts[0], max: counts[1] };
  }

  #error(offset: number, message: string): GrammarError {
    return syntaxError(this.#source, offset, message);
  }
}
