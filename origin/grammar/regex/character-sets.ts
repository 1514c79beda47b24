import {
  ALL_CODE_POINTS,
  type CodePoints,
  codePoints,
  complementCodePoints,
  intersectCodePoints,
  rangesOf,
} from '../automaton/code-points.ts';
import type { WorkBudget } from '../work-budget.ts';

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

/** Larger sets are first reduced to letters that have two cases. */
const MANY = 1000;

/** Adds the other case of each letter. */
export function bothCases(set: CodePoints, budget: WorkBudget): CodePoints {
  const ranges = rangesOf(set);
  const size = ranges.reduce((sum, [lo, hi]) => sum + hi - lo + 1, 0);
  const letters =
    size > MANY ? intersectCodePoints(set, unicodeProperty('Changes_When_Casemapped', budget)!) : set;
  for (const [lo, hi] of rangesOf(letters)) {
    budget.spend(30 * (hi - lo + 1));
    for (let char = lo; char <= hi; char++) {
      for (const other of otherCases(char)) ranges.push([other, other]);
    }
  }
  return codePoints(ranges);
}

/** The lower and upper case of a code point, if they are one code point each. */
export function otherCases(char: number): number[] {
  const text = String.fromCodePoint(char);
  const cases = [text.toLowerCase(), text.toUpperCase()].map((other) => Array.from(other));
  return cases.flatMap(([first, ...rest]) => (rest.length === 0 ? first!.codePointAt(0)! : []));
}

/** Code points tested per regular expression match. */
const CHUNK = 0x10000;
const PROPERTY_COST = 3_000_000;

/**
 * The code points of a Unicode property such as `L` or `Script=Greek`, according to this JavaScript engine. Returns
 * null if there is no such property.
 */
export function unicodeProperty(name: string, budget: WorkBudget): CodePoints | null {
  if (!/^[A-Za-z0-9_]+(=[A-Za-z0-9_]+)?$/.test(name)) return null;
  let pattern: RegExp;
  try {
    pattern = new RegExp(`\\p{${name}}+`, 'gu');
  } catch {
    return null;
  }
  const properties = FOUND.get(budget) ?? new Map<string, CodePoints>();
  FOUND.set(budget, properties);
  const found = properties.get(name) ?? searched(pattern, budget);
  properties.set(name, found);
  return found;
}

/** Cached per compilation, so that the work of a compilation does not depend on earlier ones. */
const FOUND = new WeakMap<WorkBudget, Map<string, CodePoints>>();

function searched(pattern: RegExp, budget: WorkBudget): CodePoints {
  budget.spend(PROPERTY_COST);
  const ranges: [number, number][] = [];
  for (let i = 0; i < ALL_CODE_POINTS.length; i += 2) {
    for (let lo = ALL_CODE_POINTS[i]!; lo <= ALL_CODE_POINTS[i + 1]!; lo += CHUNK) {
      const hi = Math.min(lo + CHUNK - 1, ALL_CODE_POINTS[i + 1]!);
      for (const { 0: run } of characters(lo, hi).matchAll(pattern)) {
        ranges.push([run.codePointAt(0)!, lastCodePoint(run)]);
      }
    }
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
