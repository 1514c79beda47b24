import { ALL_CODE_POINTS, type CodePoints } from '../automaton/code-points.ts';
import type { Dfa } from '../automaton/dfa.ts';
import type { WorkBudget } from '../automaton/work-budget.ts';
import { type GrammarError, syntaxError } from '../rules/grammar-error.ts';
import { ANY_BUT_LINE_END, bothCases, CASELESS_ESCAPES, CLASS_ESCAPES } from './character-sets.ts';
import { classEscape, classMembers, type ErrorAt, RegexCursor } from './regex-cursor.ts';

/** A parsed regular expression. Groups do not capture, so they have no node. */
export type RegexNode =
  | { readonly kind: 'chars'; readonly set: CodePoints }
  | { readonly kind: 'sequence'; readonly items: readonly RegexNode[] }
  | { readonly kind: 'choice'; readonly items: readonly RegexNode[] }
  /** `max` may be Infinity. */
  | { readonly kind: 'repeat'; readonly item: RegexNode; readonly min: number; readonly max: number }
  /** `^` or `$`: the start or the end of the whole text. */
  | { readonly kind: 'anchor'; readonly at: 'start' | 'end'; readonly unprovable: GrammarError }
  | LookAround
  /** Texts that an automaton over code points accepts. It may be nondeterministic. */
  | { readonly kind: 'automaton'; readonly automaton: Dfa };

/** Matches the empty text where the text after it, or before it, has a match of `item`, or has none. */
export interface LookAround {
  readonly kind: 'look';
  readonly ahead: boolean;
  readonly negative: boolean;
  readonly item: RegexNode;
  /** Thrown if text outside of the expression would decide. */
  readonly unprovable: GrammarError;
}

const MAX_NESTING = 200;
const REPEATED_ASSERTION = 'An anchor or look-around cannot be repeated';

interface RegexFlags {
  /** Whether `.` also matches line ends. */
  readonly dotAll?: boolean;
  /** Whether letters match in any case. */
  readonly ignoreCase?: boolean;
  /** Whether `^` and `$` also match at line ends. */
  readonly multiline?: boolean;
}

const IN_LINE: RegexNode = { kind: 'chars', set: ANY_BUT_LINE_END };
const IN_WORD: RegexNode = { kind: 'chars', set: CLASS_ESCAPES.w! };
const IN_CASELESS_WORD: RegexNode = { kind: 'chars', set: CASELESS_ESCAPES.w! };
const FLAG_NAMES: Readonly<Record<string, keyof RegexFlags>> = {
  i: 'ignoreCase',
  s: 'dotAll',
  m: 'multiline',
};

/**
 * Parses ECMAScript syntax with the flag u: one character is one code point. Beyond it, as Python reads them:
 * punctuation may be escaped, `]`, `{` and `}` stand for themselves where they are no syntax, and
 * `(?P<name>…)` is a group. The flags i, s and m may be set inline, also for the rest of a group. Rejected:
 * back-references, other flags.
 */
export function parseRegex(
  source: string,
  budget: WorkBudget,
  flags: RegexFlags = {},
  errorAt: ErrorAt = (offset, message) => syntaxError(source, offset, message),
): RegexNode {
  return new RegexParser(new RegexCursor(source, errorAt), budget, flags).parse();
}

class RegexParser {
  readonly #cursor: RegexCursor;
  readonly #budget: WorkBudget;
  /** The flags at the current position. */
  #flags: RegexFlags;

  constructor(cursor: RegexCursor, budget: WorkBudget, flags: RegexFlags) {
    this.#cursor = cursor;
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
    if (cursor.peek === '^' || cursor.peek === '$') return this.#anchor();
    if (cursor.take('.'))
      return { kind: 'chars', set: this.#flags.dotAll ? ALL_CODE_POINTS : ANY_BUT_LINE_END };
    if (cursor.peek === '[')
      return { kind: 'chars', set: classMembers(cursor, this.#budget, this.#flags.ignoreCase) };
    if (cursor.peek === '(') return this.#group(nesting);
    if (cursor.peek === '\\') return this.#escape();
    if ('*+?'.includes(cursor.peek)) throw cursor.error('Nothing to repeat before the quantifier');
    if (/^\{[-\d\s]*,?[-\d\s]*\}/.test(cursor.rest(24)))
      throw cursor.error('A count needs an item before it and a minimum, as in a{0,3}');
    const char = cursor.codePoint();
    return this.#chars([char, char]);
  }

  #anchor(): RegexNode {
    const offset = this.#cursor.offset;
    const atStart = this.#cursor.take('^');
    if (!atStart) this.#cursor.take('$');
    const look = this.#look(!atStart, true, IN_LINE, offset);
    if (this.#flags.multiline) return look;
    return { kind: 'anchor', at: atStart ? 'start' : 'end', unprovable: look.unprovable };
  }

  #look(ahead: boolean, negative: boolean, item: RegexNode, offset: number): LookAround {
    const unprovable = this.#cursor.error(
      'The text around the expression decides whether this matches',
      offset,
    );
    return { kind: 'look', ahead, negative, item, unprovable };
  }

  #group(nesting: number): RegexNode {
    const cursor = this.#cursor;
    const offset = cursor.offset;
    if (nesting >= MAX_NESTING) throw cursor.error(`Groups are nested more than ${MAX_NESTING} levels deep`);
    cursor.take('(');
    const outside = this.#flags;
    const look = cursor.match(/\?(<?)([=!])/y);
    if (look === null && cursor.take('?')) {
      const flags = cursor.match(/([a-z]*)(?:-([a-z]*))?([:)])/y);
      if (flags === null) {
        if (!cursor.takeGroupName())
          throw this.#cursor.error(
            'This kind of group is not supported; use (…), (?:…) or (?<name>…)',
            offset,
          );
      } else {
        this.#flags = this.#flagsAfter(flags[1]!, flags[2] ?? '', offset);
        // Without a colon, the flags apply to the rest of the group around them.
        if (flags[3] === ')') return { kind: 'sequence', items: [] };
      }
    }
    const inner = this.#alternatives(nesting + 1);
    if (!cursor.take(')')) throw cursor.error('The group is not closed', offset);
    this.#flags = outside;
    if (look !== null) return this.#look(look[1] === '', look[2] === '!', inner, offset);
    // Keeps a group around an assertion, because a group can be repeated and an assertion cannot.
    return isAssertion(inner) ? { kind: 'sequence', items: [inner] } : inner;
  }

  #flagsAfter(set: string, cleared: string, offset: number): RegexFlags {
    const changes = [...set, ...cleared].map((letter, i): [string, boolean] => {
      const name = FLAG_NAMES[letter];
      if (name === undefined)
        throw this.#cursor.error(`The flag "${letter}" is not supported; use i, s or m`, offset);
      return [name, i < set.length];
    });
    return { ...this.#flags, ...Object.fromEntries(changes) };
  }

  #escape(): RegexNode {
    const cursor = this.#cursor;
    const offset = cursor.offset;
    const next = cursor.rest(2).charAt(1);
    if (/[1-9]/.test(next) || next === 'k')
      throw this.#cursor.error('Back-references are not supported', offset);
    if (next === 'b' || next === 'B') {
      cursor.take(`\\${next}`);
      return this.#wordBoundary(next === 'B', offset);
    }
    const set = classEscape(cursor, this.#budget, this.#flags.ignoreCase);
    return this.#chars(set);
  }

  /** Whether one side is a word character and the other is not. `negative`: both are, or neither. */
  #wordBoundary(negative: boolean, offset: number): RegexNode {
    if (/^[*+?]/.test(this.#cursor.rest(1))) throw this.#cursor.error(REPEATED_ASSERTION);
    const word = this.#flags.ignoreCase ? IN_CASELESS_WORD : IN_WORD;
    const items = [true, false].map((before): RegexNode => {
      const after = before === negative;
      const looks = [this.#look(false, !before, word, offset), this.#look(true, !after, word, offset)];
      return { kind: 'sequence', items: looks };
    });
    return { kind: 'choice', items };
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
    if (isAssertion(item)) throw cursor.error(REPEATED_ASSERTION);
    if (counts[1] < counts[0]) throw cursor.error('The repetition counts are reversed');
    return { kind: 'repeat', item, min: counts[0], max: counts[1] };
  }
}

function isAssertion(node: RegexNode): boolean {
  return node.kind === 'anchor' || node.kind === 'look';
}
