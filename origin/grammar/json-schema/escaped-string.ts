import {
  type CodePoints,
  codePoints,
  complementCodePoints,
  intersectCodePoints,
  rangesOf,
} from '../automaton/code-points.ts';
import { codePointsByTarget, type Dfa } from '../automaton/dfa.ts';
import {
  chars,
  choice,
  EMPTY,
  type Expression,
  type GraphEdge,
  rule,
  sequence,
  text,
} from '../rules/expression.ts';

/** The letter after the backslash. */
const SHORT_ESCAPES: ReadonlyMap<number, string> = new Map([
  [0x08, 'b'],
  [0x09, 't'],
  [0x0a, 'n'],
  [0x0c, 'f'],
  [0x0d, 'r'],
  [0x22, '"'],
  [0x5c, '\\'],
]);
const BACKSLASH = text('\\');
const ESCAPED: CodePoints = [0, 0x1f, 0x22, 0x22, 0x5c, 0x5c];
/** Characters that may stand in a JSON string without an escape. */
export const UNESCAPED_CHARACTERS = complementCodePoints(ESCAPED);

/** Larger languages call a rule for each set of characters. */
const MAX_INLINED_STATES = 1000;

/**
 * A language of string values as JSON text without quotes. A character is escaped only if JSON requires it,
 * briefly or as in \u000a.
 * @param addRule keeps the bytes of characters from being repeated in every state of a large language
 */
export function escapedExpression(language: Dfa, addRule?: (label: Expression) => number): Expression {
  const isLarge = addRule !== undefined && language.edges.length > MAX_INLINED_STATES;
  const plainLabel = memoized((set) => (isLarge ? rule(addRule(chars(set))) : chars(set)));
  const escapedLabel = memoized(afterBackslash);
  // Most states of a language share few sets.
  const labelsOf = memoized((set) => {
    const { plain, escaped } = partsOf(set);
    return {
      plain: plain.length === 0 ? null : plainLabel(plain),
      escaped: escaped.length === 0 ? null : { key: escaped.join(), label: escapedLabel(escaped) },
    };
  });
  const edges: GraphEdge[] = [];
  const final = language.edges.length;
  /** By target and set: the state after a backslash, which all states share that go on there. */
  const escapes = new Map<string, number>();
  language.edges.forEach((list, from) => {
    for (const [to, set] of codePointsByTarget(list)) {
      const { plain, escaped } = labelsOf(set);
      if (plain !== null) edges.push({ from, to, label: plain });
      if (escaped === null) continue;
      const key = `${to} ${escaped.key}`;
      const state = escapes.get(key) ?? final + 1 + escapes.size;
      edges.push({ from, to: state, label: BACKSLASH });
      if (escapes.has(key)) continue;
      escapes.set(key, state);
      edges.push({ from: state, to, label: escaped.label });
    }
    if (language.final[from] === 1) edges.push({ from, to: final, label: EMPTY });
  });
  return { kind: 'graph', states: final + 1 + escapes.size, edges, final };
}

/** Computes a result once for each set of characters. */
function memoized<T>(compute: (set: CodePoints) => T): (set: CodePoints) => T {
  const results = new Map<string, T>();
  return (set) => {
    const key = set.join();
    const result = results.get(key) ?? compute(set);
    results.set(key, result);
    return result;
  };
}

/**
 * Texts of an expression over characters as a part of a JSON string, like `escapedExpression`.
 * @param escapedRule returns the rule for the escaped texts of a rule
 */
export function escapedTexts(expression: Expression, escapedRule: (rule: number) => number): Expression {
  const of = (inner: Expression): Expression => escapedTexts(inner, escapedRule);
  switch (expression.kind) {
    case 'bytes': {
      const points = Array.from(new TextDecoder().decode(expression.bytes), (char) => char.codePointAt(0)!);
      return sequence(...points.map((point) => escapedCharacter([point, point])));
    }
    case 'chars':
      return escapedCharacter(expression.set);
    case 'sequence':
    case 'choice':
      return { ...expression, items: expression.items.map(of) };
    case 'repeat':
      return { ...expression, item: of(expression.item) };
    case 'rule':
      return rule(escapedRule(expression.rule));
    case 'graph':
      return { ...expression, edges: expression.edges.map((edge) => ({ ...edge, label: of(edge.label) })) };
    case 'anyOrder': {
      const { members, additional, separator } = expression;
      return {
        ...expression,
        members: members.map((member) => ({ ...member, rule: escapedRule(member.rule) })),
        additional: additional === null ? null : escapedRule(additional),
        separator: escapedRule(separator),
      };
    }
    case 'tokens':
      throw new Error('JSON has no tokens');
  }
}

function escapedCharacter(set: CodePoints): Expression {
  const { plain, escaped } = partsOf(set);
  return escaped.length === 0
    ? chars(plain)
    : choice([chars(plain), sequence(BACKSLASH, afterBackslash(escaped))]);
}

/** Characters that stand for themselves, and those that are escaped. */
function partsOf(set: CodePoints): { readonly plain: CodePoints; readonly escaped: CodePoints } {
  return {
    plain: intersectCodePoints(set, UNESCAPED_CHARACTERS),
    escaped: intersectCodePoints(set, ESCAPED),
  };
}

/** The rest of the escapes of characters that must be escaped. */
function afterBackslash(set: CodePoints): Expression {
  const escaped = rangesOf(set).flatMap(([first, last]) =>
    Array.from({ length: last - first + 1 }, (_, i) => first + i),
  );
  const short = escaped.flatMap((c) => SHORT_ESCAPES.get(c) ?? []);
  /** In hexadecimal: \u0000 … \u001f, and the quote and the backslash. */
  const long = [0, 1, 2, 5].flatMap((digit) => {
    const last = escaped.filter((c) => c >> 4 === digit).map((c) => (c & 15).toString(16));
    const either = [...last, ...last.map((c) => c.toUpperCase())];
    return last.length === 0 ? [] : [sequence(text(`u00${digit}`), oneOf(either))];
  });
  return choice([...(short.length === 0 ? [] : [oneOf(short)]), ...long]);
}

/** One of these characters. */
export const oneOf = (characters: Iterable<string>): Expression =>
  chars(codePoints(Array.from(characters, (char) => [char.codePointAt(0)!, char.codePointAt(0)!])));
