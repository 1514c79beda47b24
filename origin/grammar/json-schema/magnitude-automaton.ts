import { determinize } from '../automaton/determinize.ts';
import { type Dfa, trim } from '../automaton/dfa.ts';
import { Nfa } from '../automaton/nfa.ts';
import type { WorkBudget } from '../automaton/work-budget.ts';

/** Digits of a number that every double keeps apart from other numbers. */
export const SAFE_DIGITS = 15;
/** Maximum digits of an integer: those of 64 bits, with a sign or, if it has an upper bound, without one. */
const MAX_WHOLE_DIGITS = 19;
const MAX_BOUNDED_DIGITS = 20;

/** A bound on an absolute value: the digits before and after the decimal point. */
export interface Magnitude {
  readonly whole: string;
  readonly fraction: string;
  readonly exclusive: boolean;
}

/** A range of absolute values. A null bound is open. */
interface MagnitudeRange {
  readonly low: Magnitude | null;
  readonly high: Magnitude | null;
  /** Whether decimal points are excluded. */
  readonly wholeOnly: boolean;
  /** Maximum digits of a number that is not whole. */
  readonly maxDigits: number;
}

export const DIGIT_0 = 0x30;
export const POINT = 0x2e;

/** Comparison of the digits so far with the same digits of a bound. */
type Order = -1 | 0 | 1;

interface Progress {
  readonly low: Order;
  readonly high: Order;
  /** Number of digits so far; `fraction`: the decimal point was read. */
  readonly count: number;
  readonly fraction: boolean;
}

/**
 * An automaton for absolute values within a range, in canonical digits. Each length of the integer part is
 * built separately.
 */
export function magnitudeAutomaton(range: MagnitudeRange, budget: WorkBudget): Dfa {
  const { low, high, wholeOnly, maxDigits } = range;
  const nfa = new Nfa(budget);
  const maxWhole = high ? MAX_BOUNDED_DIGITS : MAX_WHOLE_DIGITS;
  const open = Math.max(wholeOnly ? maxWhole : maxDigits, (low?.whole.length ?? 0) + 1);
  const longest = high ? Math.min(open, Math.max(1, high.whole.length)) : open;
  for (let length = 1; length <= longest; length++) addMagnitudes(nfa, length, range);
  const dfa = determinize(nfa, { budget, maxStates: Number.POSITIVE_INFINITY, nonEmpty: true })!;
  return trim(dfa);
}

function isSame(a: Progress, b: Progress): boolean {
  return a.low === b.low && a.high === b.high;
}

/** Adds the absolute values whose integer part has a given number of digits. */
function addMagnitudes(nfa: Nfa, length: number, range: MagnitudeRange): void {
  const { low, high, wholeOnly, maxDigits } = range;
  const states = new Map<string, number>();
  const stateOf = (at: Progress): number => {
    const key = `${at.low},${at.high},${at.count},${at.fraction}`;
    let state = states.get(key);
    if (state === undefined) {
      state = nfa.addState();
      states.set(key, state);
      visit(state, at);
    }
    return state;
  };
  const after = (at: Progress, digit: number): Progress => ({
    ...at,
    low: compare(at.low, digit, low, at, length),
    high: compare(at.high, digit, high, at, length),
    count: at.count + 1,
  });
  const visit = (state: number, at: Progress): void => {
    const wholeDone = at.fraction || at.count === length;
    if (wholeDone && (!at.fraction || at.count > length) && isWithin(at, range, length))
      nfa.addEpsilon(state, nfa.end);
    if (wholeDone && !at.fraction && !wholeOnly && length < maxDigits) {
      nfa.addEdge(state, POINT, POINT, stateOf({ ...at, fraction: true }));
    }
    if (wholeDone && (!at.fraction || at.count >= maxDigits)) return;
    for (let digit = at.count === 0 && length > 1 ? 1 : 0; digit <= 9; ) {
      const next = after(at, digit);
      // Digits with the same comparison result share an edge.
      let last = digit;
      while (last < 9 && isSame(next, after(at, last + 1))) last++;
      const mayFit = !(low && next.low < 0) && !(high && next.high > 0);
      if (mayFit) nfa.addEdge(state, DIGIT_0 + digit, DIGIT_0 + last, stateOf(next));
      digit = last + 1;
    }
  };
  visit(nfa.start, { low: 0, high: 0, count: 0, fraction: false });
}

/** @param length digits before the point */
function compare(order: Order, digit: number, bound: Magnitude | null, at: Progress, length: number): Order {
  if (order !== 0 || bound === null) return order;
  const expected = at.fraction
    ? Number(bound.fraction[at.count - length] ?? 0)
    : Number(bound.whole.padStart(length, '0')[at.count]);
  // A bound with more digits before the point exceeds every number of this length.
  if (!at.fraction && bound.whole.length > length) return -1;
  return digit < expected ? -1 : digit > expected ? 1 : 0;
}

/** Whether the number that ends here lies within the bounds. */
function isWithin(at: Progress, { low, high }: MagnitudeRange, length: number): boolean {
  const ended = (order: Order, bound: Magnitude): Order => {
    const rest = bound.fraction.slice(at.fraction ? at.count - length : 0);
    return order === 0 && rest !== '' ? -1 : order;
  };
  const fromLow = low === null ? 1 : ended(at.low, low);
  const fromHigh = high === null ? -1 : ended(at.high, high);
  return (
    (fromLow > 0 || (fromLow === 0 && !low?.exclusive)) &&
    (fromHigh < 0 || (fromHigh === 0 && !high?.exclusive))
  );
}
