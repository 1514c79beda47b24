import {
  type CodePoints,
  codePoints,
  complementCodePoints,
  intersectCodePoints,
  rangesOf,
} from '../automaton/code-points.ts';
import type { WorkBudget } from '../automaton/work-budget.ts';

const DIGIT: CodePoints = [0x30, 0x39];
const WORD: CodePoints = [0x30, 0x39, 0x41, 0x5a, 0x5f, 0x5f, 0x61, 0x7a];
/** ECMAScript WhiteSpace and LineTerminator. */
const SPACE: CodePoints = [
  0x09, 0x0d, 0x20, 0x20, 0xa0, 0xa0, 0x1680, 0x1680, 0x2000, 0x200a, 0x2028, 0x2029, 0x202f, 0x202f, 0x205f,
  0x205f, 0x3000, 0x3000, 0xfeff, 0xfeff,
];
const LINE_ENDS: CodePoints = [0x0a, 0x0a, 0x0d, 0x0d, 0x2028, 0x2029];

/** What `.` matches without the flag s. */
export const ANY_BUT_LINE_END = complementCodePoints(LINE_ENDS);

/** The sets of `\d \D \w \W \s \S` by letter. */
export const CLASS_ESCAPES: Readonly<Record<string, CodePoints>> = {
  d: DIGIT,
  D: complementCodePoints(DIGIT),
  w: WORD,
  W: complementCodePoints(WORD),
  s: SPACE,
  S: complementCodePoints(SPACE),
};

/** With the flag i, ſ and the sign of Kelvin are letters of words, because they are an s and a k. */
const WORD_IN_ANY_CASE = codePoints([...rangesOf(WORD), [0x17f, 0x17f], [0x212a, 0x212a]]);
export const CASELESS_ESCAPES: typeof CLASS_ESCAPES = {
  ...CLASS_ESCAPES,
  w: WORD_IN_ANY_CASE,
  W: complementCodePoints(WORD_IN_ANY_CASE),
};

/** The work of a search among the letters with two cases, about 60 µs. */
const CASE_COST = 6_000;
/** By letter; a few thousand at most. */
const CASES = new Map<number, CodePoints>();

/** Adds the other cases of each letter, as this JavaScript engine folds them: ſ is an s. */
export function bothCases(set: CodePoints, budget: WorkBudget): CodePoints {
  const cased = unicodeProperty('Changes_When_Casemapped', budget)!;
  if (intersectCodePoints(set, cased).length === 0) return set;
  budget.spend(CASE_COST);
  const letter = set.length === 2 && set[0] === set[1] ? set[0]! : null;
  const cached = letter === null ? undefined : CASES.get(letter);
  if (cached !== undefined) return cached;
  const members = rangesOf(set).map((range) => range.map((c) => `\\u{${c.toString(16)}}`).join('-'));
  const same = new RegExp(`[${members.join('')}]`, 'giu');
  const letters = rangesOf(cased).map(([lo, hi]) => characters(lo, hi));
  const matches = Array.from(letters.join('').matchAll(same), ([char]) => char.codePointAt(0)!);
  const cases = codePoints([...rangesOf(set), ...matches.map((c): [number, number] => [c, c])]);
  if (letter !== null) CASES.set(letter, cases);
  return cases;
}

/** The work of the first search for a property, about 20 ms on average. */
const PROPERTY_COST = 2_000_000;

/**
 * The code points of a Unicode property such as `L` or `Script=Greek`, according to this JavaScript engine.
 * Returns null if there is no such property.
 */
export function unicodeProperty(name: string, budget: WorkBudget): CodePoints | null {
  if (!/^[A-Za-z0-9_]+(=[A-Za-z0-9_]+)?$/.test(name)) return null;
  let pattern: RegExp;
  try {
    pattern = new RegExp(`\\p{${name}}+`, 'gu');
  } catch {
    return null;
  }
  const paid = PAID.get(budget) ?? new Set<string>();
  PAID.set(budget, paid);
  if (!paid.has(name)) budget.spend(PROPERTY_COST);
  paid.add(name);
  const property = PROPERTIES.get(name) ?? searched(pattern);
  PROPERTIES.set(name, property);
  return property;
}

/** Kept for later compilations. There are a few hundred properties, of 10 kB at most. */
const PROPERTIES = new Map<string, CodePoints>();
/**
 * A compilation pays for each property once, found before or not, so that its work does not depend on earlier
 * ones.
 */
const PAID = new WeakMap<WorkBudget, Set<string>>();

/**
 * Planes 4 to 13 are unassigned and 15 to 16 are for private use: each equals its second code point except
 * for the last two.
 */
const UNIFORM_PLANES = [4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 15, 16];

function searched(pattern: RegExp): CodePoints {
  const ranges: [number, number][] = [];
  const search = (lo: number, hi: number): void => {
    for (const { 0: run } of characters(lo, hi).matchAll(pattern)) {
      ranges.push([run.codePointAt(0)!, lastCodePoint(run)]);
    }
  };
  for (let plane = 0; plane <= 16; plane++) {
    const [lo, hi] = [plane * 0x10000, plane * 0x10000 + 0xffff];
    if (plane === 0) {
      search(lo, 0xd7ff);
      search(0xe000, hi);
    } else if (UNIFORM_PLANES.includes(plane)) {
      const count = ranges.length;
      search(lo, lo);
      if (ranges.length > count) ranges.push([lo, hi - 2]);
      search(hi - 1, hi);
    } else search(lo, hi);
  }
  return codePoints(ranges);
}

function characters(lo: number, hi: number): string {
  const parts: string[] = [];
  for (let c = lo; c <= hi; c++) parts.push(String.fromCodePoint(c));
  return parts.join('');
}

function lastCodePoint(text: string): number {
  const last = text.charCodeAt(text.length - 1);
  return last >= 0xdc00 && last <= 0xdfff ? text.codePointAt(text.length - 2)! : last;
}
